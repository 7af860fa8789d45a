{{- define "evoslurm.name" -}}
{{- if contains "evoslurm" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-evoslurm" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "evoslurm.selector" -}}
app.kubernetes.io/name: evoslurm
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "evoslurm.labels" -}}
{{ include "evoslurm.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "evoslurm.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* evoslurm.yaml, sidecar's and commands'. */ -}}
{{- define "evoslurm.config" -}}
{{- $own := dict "database" "/var/lib/evoslurm/evoslurm.db" "api" "unix:///run/evoslurm/api.sock"
  "listen" (dict "socket" "/run/evoslurm/api.sock" "tcp" (printf ":%d" (int .Values.service.port)) "forwarded" .Values.service.forwarded "metrics" ":6822") -}}
{{- if eq .Values.slurm.auth "munge" }}{{ $_ := set $own "munge" (dict "socket" "/run/munge/munge.socket.2") }}
{{- else }}{{ $_ := merge $own (dict "auth" "jwt" "jwt" (dict "key" "/run/jwt/jwt.key")) }}{{ end -}}
{{- mergeOverwrite (deepCopy .Values.config) $own | toYaml }}
{{- end }}

{{- define "evoslurm.locked" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
