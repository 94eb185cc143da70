package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kinds maps kinds to API types. Strict decoding rejects unknown fields.
var kinds = map[string]func() metav1.Object{
	"v1 Namespace":                           func() metav1.Object { return &corev1.Namespace{} },
	"v1 Secret":                              func() metav1.Object { return &corev1.Secret{} },
	"v1 Service":                             func() metav1.Object { return &corev1.Service{} },
	"apps/v1 StatefulSet":                    func() metav1.Object { return &appsv1.StatefulSet{} },
	"apps/v1 Deployment":                     func() metav1.Object { return &appsv1.Deployment{} },
	"apps/v1 DaemonSet":                      func() metav1.Object { return &appsv1.DaemonSet{} },
	"autoscaling/v2 HorizontalPodAutoscaler": func() metav1.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"policy/v1 PodDisruptionBudget":          func() metav1.Object { return &policyv1.PodDisruptionBudget{} },
	"networking.k8s.io/v1 NetworkPolicy":     func() metav1.Object { return &networkingv1.NetworkPolicy{} },
	"postgresql.cnpg.io/v1 Cluster":          func() metav1.Object { return &databaseCluster{} },
}

// databaseCluster is the part of CloudNativePG's kind that deploy/ uses.
type databaseCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Instances int
		ImageName string
		Bootstrap struct {
			InitDB struct {
				Database, Owner string
				DataChecksums   bool
			}
		}
		PostgreSQL struct {
			Synchronous struct {
				Method         string
				Number         int
				DataDurability string
			}
		}
		Affinity struct {
			EnablePodAntiAffinity bool
			PodAntiAffinityType   string
			TopologyKey           string
		}
		Storage   struct{ Size string }
		Resources corev1.ResourceRequirements
	}
}

// manifests returns the objects that kustomize builds from a folder, keyed by "kind/name", such as
// "Deployment/tuner".
func manifests(t *testing.T, folder string) map[string]metav1.Object {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(manifestFiles(t), "/"+folder)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]metav1.Object{}
	for _, r := range made.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		newObject := kinds[r.GetApiVersion()+" "+r.GetKind()]
		if newObject == nil {
			t.Fatalf("%s: no type for %s %s", folder, r.GetApiVersion(), r.GetKind())
		}
		o := newObject()
		if err := yaml.UnmarshalStrict(text, o); err != nil {
			t.Fatalf("%s: %s/%s: %v", folder, r.GetKind(), r.GetName(), err)
		}
		objects[r.GetKind()+"/"+o.GetName()] = o
	}
	return objects
}

// manifestFiles returns the kustomizations of deploy/, with an empty file for each secret that setup.sh creates.
func manifestFiles(t *testing.T) filesys.FileSystem {
	t.Helper()
	files, dir := filesys.MakeFsInMemory(), filepath.Join(root, "deploy")
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path) // path is below dir
		if err != nil || entry.IsDir() || !strings.HasPrefix(name, "kubernetes") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return files.WriteFile("/"+filepath.ToSlash(name), text)
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := files.ReadFile("/kubernetes/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ SecretGenerator []struct{ Files []string } }
	if err := yaml.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	for _, s := range k.SecretGenerator {
		for _, file := range s.Files {
			if err := files.WriteFile("/kubernetes/"+file, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files
}
