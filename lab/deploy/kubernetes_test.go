package deploy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// folders lists the kustomizations. Each is an overlay of the previous one.
var folders = []string{"kubernetes", "kubernetes-postgres", "kubernetes-shards"}

// pods returns the templates of all pods, by component.
func pods(t *testing.T, folder string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	for _, o := range manifests(t, folder) {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			out[o.Name] = selected(t, o.Name, o.Spec.Selector, o.Spec.Template)
		case *appsv1.Deployment:
			out[o.Name] = selected(t, o.Name, o.Spec.Selector, o.Spec.Template)
		case *appsv1.DaemonSet:
			out[o.Name] = selected(t, o.Name, o.Spec.Selector, o.Spec.Template)
		}
	}
	return out
}

func selected(t *testing.T, name string, by *metav1.LabelSelector, pod corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		t.Errorf("%s does not select its own pods: %v", name, err)
	}
	return pod
}

func TestManifestsAreOfTheAPI(t *testing.T) {
	all := manifests(t, folders[0])
	for _, want := range []string{
		"Namespace/tilth", "StatefulSet/tracker", "Service/tracker", "PodDisruptionBudget/tracker", "Deployment/tuner", "Deployment/builder",
		"HorizontalPodAutoscaler/builder", "DaemonSet/runner", "NetworkPolicy/closed",
	} {
		if all[want] == nil {
			t.Errorf("there is no %s", want)
		}
	}
	for name, o := range all {
		if name != "Namespace/tilth" && o.GetNamespace() != "tilth" {
			t.Errorf("%s is in the namespace %q", name, o.GetNamespace())
		}
	}
}

// TestPodsAreRestricted checks that the namespace enforces the restricted Pod Security Standard, and that the pods
// comply.
func TestPodsAreRestricted(t *testing.T) {
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) { podsAreRestricted(t, folder) })
	}
}

func podsAreRestricted(t *testing.T, folder string) {
	for name, pod := range pods(t, folder) {
		s := pod.Spec.SecurityContext
		if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || pod.Spec.HostNetwork || pod.Spec.HostPID {
			t.Errorf("%s is not restricted: %v", name, s)
		}
		if a := pod.Spec.AutomountServiceAccountToken; a == nil || *a {
			t.Errorf("%s gets a token of the cluster's", name)
		}
		for _, c := range pod.Spec.Containers {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
				!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("%s may do more than it needs", name)
			}
			if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s has no bounds of memory", name)
			}
			if c.LivenessProbe == nil || c.ReadinessProbe == nil {
				t.Errorf("%s is not probed", name)
			}
		}
	}
}

// TestPodsReferToWhatIsThere checks that ports of probes, mounts and secrets of volumes exist.
func TestPodsReferToWhatIsThere(t *testing.T) {
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) { podsReferToWhatIsThere(t, folder) })
	}
}

func podsReferToWhatIsThere(t *testing.T, folder string) {
	secrets := map[string][]string{}
	if folder != folders[0] { // created by the operator
		secrets["database-ca"] = []string{"ca.crt"}
	}
	for _, o := range manifests(t, folder) {
		if s, is := o.(*corev1.Secret); is {
			secrets[s.Name] = slices.Collect(maps.Keys(s.Data))
		}
	}
	for name, pod := range pods(t, folder) {
		volumes := map[string]bool{"data": name == "tracker" && folder == folders[0]}
		for _, v := range pod.Spec.Volumes {
			volumes[v.Name] = true
			if v.Secret != nil {
				if secrets[v.Secret.SecretName] == nil {
					t.Errorf("%s mounts the secret %s, which nothing makes", name, v.Secret.SecretName)
				}
				if v.Name != "secrets" { // not mounted at /run/tilth
					continue
				}
				checkSecretFiles(t, name, pod.Spec.Containers[0].Args, secrets[v.Secret.SecretName])
			}
		}
		c := pod.Spec.Containers[0]
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s mounts the volume %s, which is not there", name, m.Name)
			}
		}
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil && !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal }) {
				t.Errorf("%s is probed at %v, which is not a port of it", name, probe.HTTPGet.Port)
			}
		}
	}
}

func checkSecretFiles(t *testing.T, name string, args, files []string) {
	t.Helper()
	for _, arg := range args {
		if _, path, is := strings.Cut(arg, "=/run/tilth/"); is && !slices.Contains(files, path) {
			t.Errorf("%s reads %s, which its secret does not have: %v", name, path, files)
		}
	}
}

// TestTrackerOfADatabaseMayMove checks for two trackers, one of which may move at a time. Only the trackers and
// the operator can reach the servers. A standby confirms each commit.
func TestTrackerOfADatabaseMayMove(t *testing.T) {
	all := manifests(t, folders[1])
	if all["StatefulSet/tracker"] != nil {
		t.Error("there is a third tracker")
	}
	tracker := all["Deployment/tracker"].(*appsv1.Deployment)
	// The standby tracker is not ready, so a rollout that waited for a third one would never end.
	if update := tracker.Spec.Strategy.RollingUpdate; *tracker.Spec.Replicas != 2 || update == nil || update.MaxSurge.IntValue() != 0 {
		t.Errorf("no tracker stands by, or it is never replaced: %v", tracker.Spec.Strategy)
	}
	if budget := all["PodDisruptionBudget/tracker"].(*policyv1.PodDisruptionBudget); budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the tracker may not be evicted: %v", budget.Spec.MaxUnavailable)
	}
	service := all["Service/tracker"].(*corev1.Service)
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(tracker.Spec.Template.Labels)) {
		t.Error("the service does not lead to the tracker")
	}
	cluster := all["Cluster/database"].(*databaseCluster)
	if s := cluster.Spec.PostgreSQL.Synchronous; cluster.Spec.Instances < 3 || s.Number < 1 || s.DataDurability != "required" {
		t.Errorf("a fail-over may lose what was acknowledged: %v", cluster.Spec)
	}
	store := tracker.Spec.Template.Spec.Containers[0].Args[1]
	want := fmt.Sprintf("--store=postgres://%s@%s-rw/%s?sslmode=verify-full&sslrootcert=/run/postgres/ca.crt",
		cluster.Spec.Bootstrap.InitDB.Owner, cluster.Name, cluster.Spec.Bootstrap.InitDB.Database)
	if store != want {
		t.Errorf("the tracker has %s, want %s", store, want)
	}
	for _, name := range []string{"tracker-to-database", "database"} {
		if all["NetworkPolicy/"+name] == nil {
			t.Errorf("there is no policy %s", name)
		}
	}
}

// TestScalersFollowWhatIsHandedOn checks that the adapter exports the metrics by which builders and trackers scale.
func TestScalersFollowWhatIsHandedOn(t *testing.T) {
	var adapter struct {
		Prometheus struct {
			URL  string
			Port int
		}
		Rules struct {
			Default  bool
			External []struct {
				SeriesQuery  string
				Resources    map[string]any
				Name         map[string]string
				MetricsQuery string
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "kubernetes", "prometheus-adapter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &adapter); err != nil {
		t.Fatal(err)
	}
	all := manifests(t, folders[2])
	for name, of := range map[string]string{"builder": "map[kind:builder]", "tracker": "map[]"} {
		scaler := all["HorizontalPodAutoscaler/"+name].(*autoscalingv2.HorizontalPodAutoscaler)
		metrics := scaler.Spec.Metrics
		metric := metrics[len(metrics)-1].External.Metric
		handedOn := false
		for _, rule := range adapter.Rules.External {
			handedOn = handedOn || strings.HasPrefix(rule.SeriesQuery, metric.Name+"{")
		}
		if !handedOn {
			t.Errorf("%ss are scaled by %s, which the adapter does not hand on", name, metric.Name)
		}
		if !documented(t)[metric.Name] {
			t.Errorf("%ss are scaled by %s, which nobody exports", name, metric.Name)
		}
		matched := map[string]string{}
		if metric.Selector != nil {
			matched = metric.Selector.MatchLabels
		}
		if got := fmt.Sprint(matched); got != of {
			t.Errorf("%ss are scaled by what matches %s", name, got)
		}
	}
}

// TestTrackersSideBySideAreCalledByOneName checks that one name resolves to all trackers of a shared database, and
// that there are no more trackers than useful for the number of shards.
func TestTrackersSideBySideAreCalledByOneName(t *testing.T) {
	all := manifests(t, folders[2])
	tracker := all["Deployment/tracker"].(*appsv1.Deployment)
	if tracker.Spec.Replicas != nil {
		t.Error("an update would undo what the autoscaler does")
	}
	scaler := all["HorizontalPodAutoscaler/tracker"].(*autoscalingv2.HorizontalPodAutoscaler)
	if want := fmt.Sprint("--shards=", scaler.Spec.MaxReplicas); !slices.Contains(tracker.Spec.Template.Spec.Containers[0].Args, want) {
		t.Errorf("the trackers do not have %s", want)
	}
	service := all["Service/trackers"].(*corev1.Service)
	if service.Spec.ClusterIP != corev1.ClusterIPNone || !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(tracker.Spec.Template.Labels)) {
		t.Error("the name does not lead to all trackers")
	}
	for name, pod := range pods(t, folders[2]) {
		if name != "tracker" && !slices.Contains(pod.Spec.Containers[0].Args, "--tracker=trackers:9190") {
			t.Errorf("%s does not call all trackers", name)
		}
	}
}
