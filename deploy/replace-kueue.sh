#!/usr/bin/env bash
# Stop Kueue's controllers for good, so that Mooring admits in their place; queues and Workloads stay as they are.
#
#   deploy/replace-kueue.sh [NAMESPACE]          where Kueue is installed; default kueue-system
#
# Scaling Kueue down is not enough, and breaks a cluster: its webhooks refuse every Job and pod while nobody answers them
# (failurePolicy: Fail), its kinds convert between versions by a webhook, and its APIService makes discovery fail. The
# order below leaves no moment at which something fails. Each step may be repeated.
#
# To go back: stop Mooring, and install the same release of Kueue again (docs/running-live.md, "In place of Kueue").
set -euo pipefail
namespace=${1:-kueue-system}
group=kueue.x-k8s.io
kinds=$(kubectl get customresourcedefinitions -o jsonpath='{range .items[*]}{.spec.group}{" "}{.metadata.name}{"\n"}{end}' |
  awk -v group="$group" '$1 == group {print $2}')
[ -n "$kinds" ] || { echo "there are no kinds of $group: nothing to do" >&2; exit 1; }

echo "1. Objects that are stored in an older version are written again, while Kueue still converts them."
for kind in $kinds; do
  storage=$(kubectl get customresourcedefinition "$kind" -o jsonpath='{.spec.versions[?(@.storage==true)].name}')
  stored=$(kubectl get customresourcedefinition "$kind" -o jsonpath='{.status.storedVersions[*]}')
  [ "$storage" = v1beta2 ] || { echo "$kind is stored as $storage: upgrade Kueue to a release that stores v1beta2" >&2; exit 1; }
  [ "$stored" != v1beta2 ] || continue
  plural=${kind%%.*}
  if [ -n "$(kubectl get "$plural.v1beta2.$group" --all-namespaces -o name)" ]; then
    for attempt in 1 2 3 4 5; do # an object that changed meanwhile is written in its new version by whoever changed it
      ! kubectl get "$plural.v1beta2.$group" --all-namespaces -o json | kubectl replace -f - >/dev/null || break
      [ "$attempt" != 5 ] || { echo "$plural could not be written" >&2; exit 1; }
    done
  fi
  kubectl patch customresourcedefinition "$kind" --subresource=status --type=merge \
    -p '{"status":{"storedVersions":["v1beta2"]}}' >/dev/null
done

echo "2. Webhooks go, before those who answer them."
for configuration in mutatingwebhookconfigurations validatingwebhookconfigurations; do
  kubectl get "$configuration" \
    -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.webhooks[*].clientConfig.service.namespace}{"\n"}{end}' |
    awk -v namespace="$namespace" '{for (i = 2; i <= NF; i++) if ($i == namespace) {print $1; next}}' |
    xargs -r kubectl delete "$configuration"
done
kubectl get apiservices -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.spec.service.namespace}{"\n"}{end}' |
  awk -v namespace="$namespace" '$2 == namespace {print $1}' | xargs -r kubectl delete apiservices

echo "3. Kueue's controllers end."
kubectl -n "$namespace" get deployments --selector control-plane=controller-manager -o name |
  xargs -r kubectl -n "$namespace" scale --replicas=0
kubectl -n "$namespace" wait --for=delete pods --selector control-plane=controller-manager --timeout=120s

echo "4. Kinds are served in the version in which they are stored alone, without conversion."
for kind in $kinds; do
  kubectl patch customresourcedefinition "$kind" --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
  number=0
  for version in $(kubectl get customresourcedefinition "$kind" -o jsonpath='{.spec.versions[*].name}'); do
    [ "$version" = v1beta2 ] || kubectl patch customresourcedefinition "$kind" --type=json \
      -p "[{\"op\": \"replace\", \"path\": \"/spec/versions/$number/served\", \"value\": false}]"
    number=$((number + 1))
  done
done

echo "5. Finalizers that only Kueue removes are taken off: nothing could be deleted any more."
for kind in $kinds; do
  kubectl get "$kind" --all-namespaces \
    -o jsonpath='{range .items[*]}{.metadata.namespace}{"/"}{.metadata.name}{" "}{.metadata.finalizers}{"\n"}{end}' |
    awk '/kueue.x-k8s.io\/resource-in-use/ {print $1}' |
    while IFS=/ read -r place name; do
      kubectl ${place:+-n "$place"} patch "$kind" "$name" --type=merge -p '{"metadata":{"finalizers":null}}'
    done
done
kubectl get pods --all-namespaces --selector "$group/managed=true" \
  -o jsonpath='{range .items[*]}{.metadata.namespace}{"/"}{.metadata.name}{" "}{.metadata.finalizers}{"\n"}{end}' |
  awk '/kueue.x-k8s.io\/managed/ {print $1}' |
  while IFS=/ read -r place name; do
    kubectl -n "$place" patch pod "$name" --type=merge -p '{"metadata":{"finalizers":null}}'
  done

echo "Done. Mooring admits from now on, where it runs."
