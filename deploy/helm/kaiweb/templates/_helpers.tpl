{{- define "kaiweb.labels" -}}
app.kubernetes.io/part-of: kaiweb
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The labels by which Deployments, Services, budgets and policies find the pods of one component. */}}
{{- define "kaiweb.selector" -}}
app: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "kaiweb.image" -}}
{{- $tag := .Values.global.tag | default .Chart.AppVersion -}}
{{- if .Values.global.registry -}}{{ .Values.global.registry }}/{{- end -}}
{{ .Values.image.name }}:{{ $tag }}
{{- end }}

{{- define "kaiweb.secret" -}}
{{ .Values.secrets.existingSecret | default "kaiweb" }}
{{- end }}

{{/* One variable from the Secret. */}}
{{- define "kaiweb.fromSecret" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ include "kaiweb.secret" .root }}
      key: {{ .key }}
{{- end }}

{{/* What every process of kaiweb reads. */}}
{{- define "kaiweb.environment" -}}
- {name: DJANGO_SETTINGS_MODULE, value: kaiweb.settings.production}
# Below the mount: its own folder belongs to root, and kaiweb makes its state private to its user.
- {name: KAIWEB_HOME, value: /var/lib/kaiweb/home}
- {name: KAIWEB_KUBECONFIG, value: in-cluster}
- {name: KAIWEB_NAMESPACE, value: {{ .Release.Namespace | quote }}}
- {name: KAIWEB_HOSTS, value: {{ join "," (concat .Values.web.hosts (list "127.0.0.1")) | quote }}}
- {name: KAIWEB_SHARDS, value: {{ join "," .Values.scheduler.shards | quote }}}
- {name: KAIWEB_WANTED, value: /etc/kaiweb/wanted.json}
- {name: KAIWEB_LOG_JSON, value: {{ .Values.global.jsonLog | ternary "1" "0" | quote }}}
{{- with .Values.notifications.networks }}
- {name: KAIWEB_NOTIFY_NETWORKS, value: {{ join "," . | quote }}}
{{- end }}
- {name: PYTHONUNBUFFERED, value: "1"}
- {name: OPENBLAS_NUM_THREADS, value: "1"}
- {name: OMP_NUM_THREADS, value: "1"}
{{ include "kaiweb.fromSecret" (dict "root" . "name" "KAIWEB_SECRET_KEY" "key" "secret-key") }}
{{ include "kaiweb.fromSecret" (dict "root" . "name" "DATABASE_URL" "key" "database-url") }}
{{ include "kaiweb.fromSecret" (dict "root" . "name" "REDIS_URL" "key" "redis-url") }}
{{- end }}

{{- define "kaiweb.podSecurityContext" -}}
{{- $own := dict "runAsNonRoot" true "runAsUser" 10000 "runAsGroup" 10000 "fsGroup" 10000 "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.global.podSecurityContext)) -}}
{{- end }}

{{- define "kaiweb.securityContext" -}}
{{- $own := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "runAsNonRoot" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.global.securityContext)) -}}
{{- end }}

{{/* Where pods may run. Replicas of one component are spread over nodes unless an affinity says otherwise. */}}
{{- define "kaiweb.placement" -}}
{{- with .root.Values.global.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.global.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.global.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- $affinity := mergeOverwrite (deepCopy .root.Values.global.affinity) (deepCopy (.affinity | default dict)) }}
{{- if not (hasKey $affinity "podAntiAffinity") }}
{{- $selector := dict "matchLabels" (include "kaiweb.selector" . | fromYaml) }}
{{- $term := dict "labelSelector" $selector "topologyKey" "kubernetes.io/hostname" }}
{{- if .root.Values.global.requireDefaultPodAntiAffinityTerm }}
{{- $_ := set $affinity "podAntiAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term)) }}
{{- else }}
{{- $_ := set $affinity "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" (list (dict "weight" 100 "podAffinityTerm" $term))) }}
{{- end }}
{{- end }}
affinity: {{- toYaml $affinity | nindent 2 }}
{{- end }}

{{/*
One Deployment of kaiweb.
  root      the context of the chart
  name      of the Deployment
  process   as kaiweb/supervisor/layout.py names it; its signs of life are asked for by that name
  account   the service account; "" for one without any right
  command   a list
  replicas  0 leaves the number to an autoscaler
  rolling   whether an old and a new pod may run side by side
  values    the component's values: resources, affinity
  env, ports, readiness   YAML text, each may be empty
*/}}
{{- define "kaiweb.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "kaiweb.labels" .root | nindent 4 }}
    app: {{ .name }}
    kaiweb/process: {{ .process }}
spec:
  {{- if .replicas }}
  replicas: {{ .replicas }}
  {{- end }}
  strategy:
    type: {{ .rolling | ternary "RollingUpdate" "Recreate" }}
  selector:
    matchLabels: {{- include "kaiweb.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "kaiweb.labels" .root | nindent 8 }}
        app: {{ .name }}
        kaiweb/process: {{ .process }}
        {{- if contains "metrics" (.ports | default "") }}
        kaiweb/serves-metrics: "true"
        {{- end }}
      annotations:
        # Other addresses of the stores restart everything; the random passwords never change.
        checksum/stores: {{ list .root.Values.postgresql.url .root.Values.redis.url .root.Values.secrets | toJson | sha256sum }}
    spec:
      serviceAccountName: {{ .account | default "default" }}
      automountServiceAccountToken: {{ ne .account "" }}
      securityContext: {{- include "kaiweb.podSecurityContext" .root | nindent 8 }}
      {{- with .root.Values.global.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- include "kaiweb.placement" (dict "root" .root "name" .name "affinity" .values.affinity) | nindent 6 }}
      terminationGracePeriodSeconds: 30
      initContainers:
        - name: wait-for-database
          image: {{ include "kaiweb.image" .root }}
          imagePullPolicy: {{ .root.Values.global.imagePullPolicy }}
          command: [kaiweb, bootstrap, --wait]
          env: {{- include "kaiweb.environment" .root | nindent 12 }}
          securityContext: {{- include "kaiweb.securityContext" .root | nindent 12 }}
          resources: {requests: {cpu: 10m, memory: 128Mi}, limits: {memory: 512Mi}}
          volumeMounts: [{name: home, mountPath: /var/lib/kaiweb}, {name: tmp, mountPath: /tmp}, {name: wanted, mountPath: /etc/kaiweb}]
      containers:
        - name: {{ .process }}
          image: {{ include "kaiweb.image" .root }}
          imagePullPolicy: {{ .root.Values.global.imagePullPolicy }}
          command: {{- toYaml .command | nindent 12 }}
          env:
            {{- include "kaiweb.environment" .root | nindent 12 }}
            - {name: KAIWEB_PROCESS, value: {{ .process }}}
            {{- with .env }}{{ . | trim | nindent 12 }}{{- end }}
          {{- with .ports }}
          ports: {{- . | trim | nindent 12 }}
          {{- end }}
          # Signs of life of the process itself: it has 30 s, set by KAIWEB_HANG_S, for any step.
          startupProbe: {exec: {command: [kaiweb, healthy, {{ .process }}]}, periodSeconds: 5, timeoutSeconds: 10, failureThreshold: 36}
          livenessProbe: {exec: {command: [kaiweb, healthy, {{ .process }}]}, periodSeconds: 15, timeoutSeconds: 10, failureThreshold: 2}
          {{- with .readiness }}
          readinessProbe: {{- . | trim | nindent 12 }}
          {{- end }}
          securityContext: {{- include "kaiweb.securityContext" .root | nindent 12 }}
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts: [{name: home, mountPath: /var/lib/kaiweb}, {name: tmp, mountPath: /tmp}, {name: wanted, mountPath: /etc/kaiweb}]
      volumes:
        - {name: home, emptyDir: {}}
        - {name: tmp, emptyDir: {}}
        # What the operator wants: beat and the checks of readiness follow it.
        - {name: wanted, configMap: {name: kaiweb-wanted, optional: true}}
{{- end }}

{{/* The command of a Celery worker of one queue. */}}
{{- define "kaiweb.worker" -}}
[celery, -A, kaiweb, worker, -Q, {{ .queue }}, -n, {{ .process }}@%h, -P, solo, -l, WARNING, --without-gossip, --without-mingle]
{{- end }}

{{/* The spec of Config kai-config. */}}
{{- define "kaiweb.config" -}}
namespace: {{ .Release.Namespace }}
global:
  schedulerName: {{ .Values.global.schedulerName }}
  queueLabelKey: {{ .Values.podgrouper.queueLabelKey }}
  nodePoolLabelKey: {{ .Values.global.nodePoolLabelKey }}
  {{- with .Values.global.podLabelSelector }}
  podLabelSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.global.namespaceLabelSelector }}
  namespaceLabelSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
podGrouper:
  service: {enabled: {{ .Values.podgrouper.enabled }}}
  args: {genericKartaFallback: {{ .Values.podgrouper.genericKartaFallback }}}
podGroupController:
  service: {enabled: {{ .Values.podgroupcontroller.enabled }}}
queueController:
  service: {enabled: {{ .Values.queuecontroller.enabled }}}
  metricsNamespace: {{ .Values.queuecontroller.metricsNamespace }}
admission:
  service: {enabled: {{ .Values.admission.enabled }}}
  gpuSharing: {{ .Values.global.gpuSharing }}
  blockNvidiaVisibleDevices: {{ .Values.global.blockNvidiaVisibleDevices }}
  gpuFractionRuntimeClassName: {{ .Values.admission.gpuFractionRuntimeClassName | quote }}
nodeScaleAdjuster:
  service: {enabled: {{ .Values.global.clusterAutoscaling }}}
  args: {nodeScaleNamespace: {{ .Values.nodescaleadjuster.scalingPodNamespace }}}
scheduler:
  service: {enabled: {{ .Values.scheduler.enabled }}}
binder:
  service: {enabled: {{ .Values.binder.enabled }}}
  {{- include "kaiweb.binderSettings" . | nindent 2 }}
prometheus:
  enabled: {{ .Values.prometheus.enabled }}
  {{- with .Values.prometheus.externalPrometheusUrl }}
  externalPrometheusUrl: {{ . }}
  {{- end }}
{{- end }}

{{/* The binder's part of the Config, which its process also gets as a variable. */}}
{{- define "kaiweb.binderSettings" -}}
{{- with .Values.binder.plugins }}
plugins: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not (kindIs "invalid" .Values.binder.cdiEnabled) }}
cdiEnabled: {{ .Values.binder.cdiEnabled }}
{{- end }}
resourceReservation:
  namespace: {{ .Values.global.resourceReservation.namespace }}
  serviceAccountName: {{ .Values.global.resourceReservation.serviceAccount }}
  appLabel: {{ .Values.global.resourceReservation.appLabel }}
  {{- with .Values.binder.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with .Values.binder.resourceReservationPodResources }}
  podResources: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* `a=b,c=d` of a map. */}}
{{- define "kaiweb.pairs" -}}
{{- $pairs := list -}}
{{- range $key, $value := . }}{{- $pairs = append $pairs (printf "%s=%s" $key $value) -}}{{- end -}}
{{- join "," $pairs -}}
{{- end }}
