"""The resources that are there from the start, as a table; `registry` says how a line reads."""

KUBERNETES = """
v1 bindings Binding namespaced =create
v1 componentstatuses ComponentStatus cluster cs =get,list
v1 configmaps ConfigMap namespaced cm
v1 endpoints Endpoints namespaced ep
v1 events Event namespaced ev
v1 limitranges LimitRange namespaced limits
v1 namespaces Namespace cluster ns /finalize /status =create,delete,get,list,patch,update,watch
v1 nodes Node cluster no /proxy /status
v1 persistentvolumeclaims PersistentVolumeClaim namespaced pvc /status
v1 persistentvolumes PersistentVolume cluster pv /status
v1 pods Pod namespaced po +all \
  /attach /binding /ephemeralcontainers /eviction /exec /log /portforward /proxy /resize /status
v1 podtemplates PodTemplate namespaced
v1 replicationcontrollers ReplicationController namespaced rc +all /scale /status
v1 resourcequotas ResourceQuota namespaced quota /status
v1 secrets Secret namespaced
v1 serviceaccounts ServiceAccount namespaced sa /token
v1 services Service namespaced svc +all /proxy /status
admissionregistration.k8s.io/v1 mutatingadmissionpolicies MutatingAdmissionPolicy cluster +api-extensions
admissionregistration.k8s.io/v1 mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding cluster +api-extensions
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations MutatingWebhookConfiguration cluster +api-extensions
admissionregistration.k8s.io/v1 validatingadmissionpolicies ValidatingAdmissionPolicy cluster +api-extensions /status
admissionregistration.k8s.io/v1 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding cluster \
  +api-extensions
admissionregistration.k8s.io/v1 validatingwebhookconfigurations ValidatingWebhookConfiguration cluster +api-extensions
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition cluster crd crds +api-extensions /status
apiregistration.k8s.io/v1 apiservices APIService cluster +api-extensions /status
apps/v1 controllerrevisions ControllerRevision namespaced
apps/v1 daemonsets DaemonSet namespaced ds +all /status
apps/v1 deployments Deployment namespaced deploy +all /scale /status
apps/v1 replicasets ReplicaSet namespaced rs +all /scale /status
apps/v1 statefulsets StatefulSet namespaced sts +all /scale /status
authentication.k8s.io/v1 selfsubjectreviews SelfSubjectReview cluster =create
authentication.k8s.io/v1 tokenreviews TokenReview cluster =create
authorization.k8s.io/v1 localsubjectaccessreviews LocalSubjectAccessReview namespaced =create
authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview cluster =create
authorization.k8s.io/v1 selfsubjectrulesreviews SelfSubjectRulesReview cluster =create
authorization.k8s.io/v1 subjectaccessreviews SubjectAccessReview cluster =create
autoscaling/v2,v1 horizontalpodautoscalers HorizontalPodAutoscaler namespaced hpa +all /status
batch/v1 cronjobs CronJob namespaced cj +all /status
batch/v1 jobs Job namespaced +all /status
certificates.k8s.io/v1 certificatesigningrequests CertificateSigningRequest cluster csr /approval /status
coordination.k8s.io/v1 leases Lease namespaced
discovery.k8s.io/v1 endpointslices EndpointSlice namespaced
events.k8s.io/v1 events Event namespaced ev >events
flowcontrol.apiserver.k8s.io/v1 flowschemas FlowSchema cluster /status
flowcontrol.apiserver.k8s.io/v1 prioritylevelconfigurations PriorityLevelConfiguration cluster /status
networking.k8s.io/v1 ingressclasses IngressClass cluster
networking.k8s.io/v1 ingresses Ingress namespaced ing /status
networking.k8s.io/v1 ipaddresses IPAddress cluster ip
networking.k8s.io/v1 networkpolicies NetworkPolicy namespaced netpol
networking.k8s.io/v1 servicecidrs ServiceCIDR cluster /status
node.k8s.io/v1 runtimeclasses RuntimeClass cluster
policy/v1 poddisruptionbudgets PodDisruptionBudget namespaced pdb /status
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding cluster
rbac.authorization.k8s.io/v1 clusterroles ClusterRole cluster
rbac.authorization.k8s.io/v1 rolebindings RoleBinding namespaced
rbac.authorization.k8s.io/v1 roles Role namespaced
resource.k8s.io/v1,v1beta2,v1beta1 deviceclasses DeviceClass cluster
resource.k8s.io/v1,v1beta2,v1alpha3 devicetaintrules DeviceTaintRule cluster /status
resource.k8s.io/v1,v1beta2,v1beta1 resourceclaims ResourceClaim namespaced /status
resource.k8s.io/v1,v1beta2,v1beta1 resourceclaimtemplates ResourceClaimTemplate namespaced
resource.k8s.io/v1,v1beta2,v1beta1 resourceslices ResourceSlice cluster
resource.k8s.io/v1alpha3 resourcepoolstatusrequests ResourcePoolStatusRequest cluster /status
scheduling.k8s.io/v1alpha3 compositepodgroups CompositePodGroup namespaced /status
scheduling.k8s.io/v1beta1,v1alpha3 podgroups PodGroup namespaced /status
scheduling.k8s.io/v1 priorityclasses PriorityClass cluster pc
scheduling.k8s.io/v1beta1,v1alpha3 workloads Workload namespaced
storage.k8s.io/v1 csidrivers CSIDriver cluster
storage.k8s.io/v1 csinodes CSINode cluster /status
storage.k8s.io/v1 csistoragecapacities CSIStorageCapacity namespaced
storage.k8s.io/v1 storageclasses StorageClass cluster sc
storage.k8s.io/v1 volumeattachments VolumeAttachment cluster /status
storage.k8s.io/v1 volumeattributesclasses VolumeAttributesClass cluster vac
"""

CUSTOM = """
# Kueue
kueue.x-k8s.io/v1beta2,v1beta1 admissionchecks AdmissionCheck cluster /status
kueue.x-k8s.io/v1beta2,v1beta1 clusterqueues ClusterQueue cluster cq /status
kueue.x-k8s.io/v1beta2,v1beta1 cohorts Cohort cluster /status
kueue.x-k8s.io/v1beta2,v1beta1 localqueues LocalQueue namespaced queue queues lq /status
kueue.x-k8s.io/v1beta2,v1beta1 provisioningrequestconfigs ProvisioningRequestConfig cluster
kueue.x-k8s.io/v1beta2,v1beta1 resourceflavors ResourceFlavor cluster flavor flavors rf
kueue.x-k8s.io/v1beta2,v1beta1 topologies Topology cluster
kueue.x-k8s.io/v1beta2,v1beta1 workloadpriorityclasses WorkloadPriorityClass cluster
kueue.x-k8s.io/v1beta2,v1beta1 workloads Workload namespaced wl /status
# Volcano
batch.volcano.sh/v1alpha1 cronjobs CronJob namespaced cronvcjob cronvj /status
batch.volcano.sh/v1alpha1 jobs Job namespaced vcjob vj /status
flow.volcano.sh/v1alpha1 jobflows JobFlow namespaced jf /status
flow.volcano.sh/v1alpha1 jobtemplates JobTemplate namespaced jt /status
scheduling.volcano.sh/v1beta1 podgroups PodGroup namespaced pg podgroup-v1beta1 /status
scheduling.volcano.sh/v1beta1 queues Queue cluster q queue-v1beta1 /status
topology.volcano.sh/v1alpha1 hypernodes HyperNode cluster hn /status
# scheduler-plugins and Koordinator
config.koordinator.sh/v1alpha1 clustercolocationprofiles ClusterColocationProfile cluster /status
scheduling.koordinator.sh/v1alpha1 devices Device cluster /status
scheduling.x-k8s.io/v1alpha1 elasticquotas ElasticQuota namespaced eq eqs /status
scheduling.x-k8s.io/v1alpha1 podgroups PodGroup namespaced pg pgs /status
scheduling.sigs.k8s.io/v1alpha1 elasticquotas ElasticQuota namespaced eq eqs /status
scheduling.sigs.k8s.io/v1alpha1 podgroups PodGroup namespaced pg pgs /status
# KAI and Grove
grove.io/v1alpha1 clustertopologies ClusterTopology cluster ct /status
grove.io/v1alpha1 clustertopologybindings ClusterTopologyBinding cluster ctb /status
grove.io/v1alpha1 podcliques PodClique namespaced pclq /scale /status
grove.io/v1alpha1 podcliquescalinggroups PodCliqueScalingGroup namespaced pcsg /scale /status
grove.io/v1alpha1 podcliquesets PodCliqueSet namespaced pcs /scale /status
kai.scheduler/v1alpha1 topologies Topology cluster
scheduler.grove.io/v1alpha1 podgangs PodGang namespaced pg /status
scheduling.run.ai/v2 queues Queue cluster /status
scheduling.run.ai/v2alpha2 podgroups PodGroup namespaced /status
# what says more of nodes and devices
resource.nvidia.com/v1beta1 computedomains ComputeDomain namespaced /status
topology.node.k8s.io/v1alpha2,v1alpha1 noderesourcetopologies NodeResourceTopology cluster node-res-topo
# what people run
disaggregatedset.x-k8s.io/v1 disaggregatedsets DisaggregatedSet namespaced dsset /status
jobset.x-k8s.io/v1alpha2 jobsets JobSet namespaced /status
kubeflow.org/v1 jaxjobs JAXJob namespaced /scale /status
kubeflow.org/v2beta1,v1 mpijobs MPIJob namespaced /scale /status
kubeflow.org/v1 paddlejobs PaddleJob namespaced /scale /status
kubeflow.org/v1 pytorchjobs PyTorchJob namespaced /scale /status
kubeflow.org/v1 tfjobs TFJob namespaced /scale /status
kubeflow.org/v1 xgboostjobs XGBoostJob namespaced /scale /status
leaderworkerset.x-k8s.io/v1 leaderworkersets LeaderWorkerSet namespaced lws /scale /status
ray.io/v1 rayclusters RayCluster namespaced /status
ray.io/v1 rayjobs RayJob namespaced /status
ray.io/v1 rayservices RayService namespaced /status
sparkoperator.k8s.io/v1beta2 sparkapplications SparkApplication namespaced sparkapp /status
trainer.kubeflow.org/v1alpha1 clustertrainingruntimes ClusterTrainingRuntime cluster
trainer.kubeflow.org/v1alpha1 trainingruntimes TrainingRuntime namespaced
trainer.kubeflow.org/v1alpha1 trainjobs TrainJob namespaced /status
workload.codeflare.dev/v1beta2 appwrappers AppWrapper namespaced aw /status
# what simulated nodes use
metrics.k8s.io/v1beta1 nodes NodeMetrics cluster =get,list
metrics.k8s.io/v1beta1 pods PodMetrics namespaced =get,list
# Karpenter and the Vertical Pod Autoscaler
autoscaling.k8s.io/v1 verticalpodautoscalers VerticalPodAutoscaler namespaced vpa /status
autoscaling.k8s.io/v1 verticalpodautoscalercheckpoints VerticalPodAutoscalerCheckpoint namespaced vpacheckpoint
karpenter.sh/v1 nodeclaims NodeClaim cluster +karpenter /status
karpenter.sh/v1 nodepools NodePool cluster +karpenter /status
karpenter.sh/v1alpha5 provisioners Provisioner cluster +karpenter /status
"""
