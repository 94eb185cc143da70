// Package kube runs deploy/kubernetes like a cluster, with containers of package container. It rejects
// everything that it does not support.
package kube

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the API's own types: decoded strictly into them, a field that does not exist is an error.
var kinds = map[string]func() metav1.Object{
	"v1 Namespace":                           func() metav1.Object { return &corev1.Namespace{} },
	"v1 Service":                             func() metav1.Object { return &corev1.Service{} },
	"apps/v1 StatefulSet":                    func() metav1.Object { return &appsv1.StatefulSet{} },
	"apps/v1 Deployment":                     func() metav1.Object { return &appsv1.Deployment{} },
	"apps/v1 DaemonSet":                      func() metav1.Object { return &appsv1.DaemonSet{} },
	"autoscaling/v2 HorizontalPodAutoscaler": func() metav1.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"policy/v1 PodDisruptionBudget":          func() metav1.Object { return &policyv1.PodDisruptionBudget{} },
	"networking.k8s.io/v1 NetworkPolicy":     func() metav1.Object { return &networkingv1.NetworkPolicy{} },
	"postgresql.cnpg.io/v1 Cluster":          func() metav1.Object { return &DatabaseCluster{} },
}

// Kustomization is the supported part of a kustomization file.
type Kustomization struct {
	metav1.TypeMeta  `json:",inline"`
	Namespace        string
	Resources        []string
	GeneratorOptions struct{ DisableNameSuffixHash bool }
	SecretGenerator  []Secret
	Patches          []Patch
}

// Patch changes an object of another folder: it is deleted, or a field of it replaced, removed or added to.
type Patch struct {
	Target struct{ Kind, Name string }
	Patch  string
}

// Secret is made of files, named from the folder of the kustomization.
type Secret struct {
	Name  string
	Files []string
}

// Manifests are all that kustomize applies.
type Manifests struct {
	Kustomization Kustomization
	// Objects are by "kind/name".
	Objects map[string]metav1.Object
}

// Load reads a kustomization's folder, and those that it names as resources.
func Load(dir string) (*Manifests, error) {
	m := &Manifests{Objects: map[string]metav1.Object{}}
	if err := Read(filepath.Join(dir, "kustomization.yaml"), &m.Kustomization); err != nil {
		return nil, err
	}
	for _, name := range m.Kustomization.Resources {
		path := filepath.Join(dir, name)
		var err error
		if info, failed := os.Stat(path); failed == nil && info.IsDir() {
			err = m.include(path)
		} else {
			err = m.load(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, p := range m.Kustomization.Patches {
		if err := m.patch(p); err != nil {
			return nil, fmt.Errorf("patch of the %s %s: %w", p.Target.Kind, p.Target.Name, err)
		}
	}
	return m, nil
}

func (m *Manifests) load(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			return err
		}
		newObject, known := kinds[meta.APIVersion+" "+meta.Kind]
		if !known {
			return fmt.Errorf("there is no check for a %s %s", meta.APIVersion, meta.Kind)
		}
		object := newObject()
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return err
		}
		if err := m.add(meta.Kind+"/"+object.GetName(), object); err != nil {
			return err
		}
	}
	return nil
}

// add rejects duplicates, like kustomize.
func (m *Manifests) add(name string, object metav1.Object) error {
	if m.Objects[name] != nil {
		return fmt.Errorf("%s is there twice", name)
	}
	m.Objects[name] = object
	return nil
}

// Read decodes a file strictly.
func Read(path string, into any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
