{{- define "mooring.selector" -}}
{{ toJson (dict "app.kubernetes.io/name" "mooring" "app.kubernetes.io/instance" .Release.Name) }}
{{- end }}

{{- define "mooring.labels" -}}
{{ toJson (dict "app.kubernetes.io/name" "mooring" "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version)) }}
{{- end }}

{{- define "mooring.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* In kube-scheduler's place its lease is used, where it keeps it: the two never schedule at once. */}}
{{- define "mooring.lease" -}}
{{ ternary "kube-scheduler" .Release.Name (eq .Values.schedulerName "default-scheduler") }}
{{- end }}

{{- define "mooring.leaseNamespace" -}}
{{ ternary "kube-system" .Release.Namespace (eq .Values.schedulerName "default-scheduler") }}
{{- end }}

{{- define "mooring.deployment" }}
{{- $labels := include "mooring.selector" . | fromJson }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .Release.Namespace }}
  labels: {{ include "mooring.labels" . }}
spec:
  replicas: {{ .count }}
  {{- if .nodeName }}
  strategy: {type: Recreate}
  {{- end }}
  selector: {matchLabels: {{ toJson (merge (dict) .more $labels) }}}
  template:
    metadata:
      labels: {{ toJson (merge (dict) .more $labels .Values.podLabels) }}
      {{- with .Values.podAnnotations }}
      annotations: {{ toJson . }}
      {{- end }}
    spec:
      serviceAccountName: {{ .Release.Name }}
      priorityClassName: {{ .Values.priorityClassName | quote }}
      terminationGracePeriodSeconds: 30
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets: {{ toJson . }}
      {{- end }}
      {{- if .nodeName }}
      nodeName: {{ .nodeName }}
      {{- else }}
      schedulerName: {{ .Values.podSchedulerName }}
      nodeSelector: {{ toJson .Values.nodeSelector }}
      affinity: {{ toJson .Values.affinity }}
      {{- with .Values.topologySpreadConstraints }}
      topologySpreadConstraints:
      {{- range . }}
        - {{ toJson (merge (dict) . (dict "labelSelector" (dict "matchLabels" $labels))) }}
      {{- end }}
      {{- end }}
      {{- end }}
      tolerations: {{ toJson (ternary (list (dict "operator" "Exists")) .Values.tolerations (not (empty .nodeName))) }}
      securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532}
      containers:
        - name: mooring
          image: {{ include "mooring.image" . | quote }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          args:
            - run
            - --config=/etc/mooring/config.yaml
            - --leader-elect={{ .Values.leaderElect }}
            - --leader-elect-resource-namespace={{ include "mooring.leaseNamespace" . }}
            - --leader-elect-resource-name={{ include "mooring.lease" . }}
            - --secure-address=0.0.0.0:10259
            {{- if .Values.tlsSecret }}
            - --tls-cert-file=/etc/mooring-tls/tls.crt
            - --tls-private-key-file=/etc/mooring-tls/tls.key
            {{- end }}
            {{- with .Values.rememberAs }}
            - --remember-as={{ . }}
            {{- end }}
            {{- range .Values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          ports: [{name: https, containerPort: 10259}]
          livenessProbe:
            httpGet: {path: /livez, port: https, scheme: HTTPS}
            initialDelaySeconds: 15
            periodSeconds: 10
            timeoutSeconds: 15
            failureThreshold: 8
          readinessProbe:
            httpGet: {path: /readyz, port: https, scheme: HTTPS}
            timeoutSeconds: 5
          resources: {{ toJson .Values.resources }}
          securityContext:
            runAsNonRoot: true
            readOnlyRootFilesystem: true
            allowPrivilegeEscalation: false
            capabilities: {drop: [ALL]}
            seccompProfile: {type: RuntimeDefault}
          volumeMounts:
            - {name: config, mountPath: /etc/mooring}
            - {name: tmp, mountPath: /tmp}
            {{- if .Values.tlsSecret }}
            - {name: tls, mountPath: /etc/mooring-tls, readOnly: true}
            {{- end }}
      volumes:
        - {name: config, configMap: {name: {{ .Release.Name }}}}
        - {name: tmp, emptyDir: {}}
        {{- if .Values.tlsSecret }}
        - {name: tls, secret: {secretName: {{ .Values.tlsSecret }}}}
        {{- end }}
{{- end }}
