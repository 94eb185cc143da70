package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// DatabaseCluster is what is used of CloudNativePG's own kind, decoded as strictly as the others.
type DatabaseCluster struct {
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

// include adds all that another folder applies.
func (m *Manifests) include(dir string) error {
	base, err := Load(dir)
	if err != nil {
		return err
	}
	m.Kustomization.SecretGenerator = append(m.Kustomization.SecretGenerator, base.Kustomization.SecretGenerator...)
	for name, object := range base.Objects {
		if err := m.add(name, object); err != nil {
			return err
		}
	}
	return nil
}

// patch applies a patch, which has to meet an object.
func (m *Manifests) patch(p Patch) error {
	name := p.Target.Kind + "/" + p.Target.Name
	object := m.Objects[name]
	if object == nil {
		return errors.New("there is none")
	}
	var merged struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta
		Patch           string `json:"$patch"`
	}
	if yaml.UnmarshalStrict([]byte(p.Patch), &merged) == nil {
		if merged.Patch != "delete" || merged.Kind != p.Target.Kind || merged.Metadata.Name != p.Target.Name {
			return fmt.Errorf("%q is not understood", p.Patch)
		}
		delete(m.Objects, name)
		return nil
	}
	var steps []struct {
		Op, Path string
		Value    any
	}
	if err := yaml.UnmarshalStrict([]byte(p.Patch), &steps); err != nil {
		return err
	}
	for _, s := range steps {
		if s.Op != "replace" {
			return fmt.Errorf("%s is not understood", s.Op)
		}
		if err := replace(object, s.Path, s.Value); err != nil {
			return fmt.Errorf("%s: %w", s.Path, err)
		}
	}
	return nil
}

// replace sets a field of an object, which has it.
func replace(object metav1.Object, path string, value any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	names := strings.Split(strings.TrimPrefix(path, "/"), "/")
	within := all
	for _, name := range names[:len(names)-1] {
		if within, _ = within[name].(map[string]any); within == nil {
			return fmt.Errorf("there is no %s", name)
		}
	}
	last := names[len(names)-1]
	if _, is := within[last]; !is {
		return fmt.Errorf("there is no %s", last)
	}
	within[last] = value
	if text, err = json.Marshal(all); err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, object)
}
