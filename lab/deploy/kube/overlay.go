package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// DatabaseCluster is the supported part of CloudNativePG's Cluster, decoded strictly.
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
		if err := change(object, s.Op, s.Path, s.Value); err != nil {
			return fmt.Errorf("%s %s: %w", s.Op, s.Path, err)
		}
	}
	return nil
}

// change changes a field of an object, which has it, or adds to the end of a list.
func change(object metav1.Object, op, path string, value any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	if all, err = changed(all, op, strings.Split(strings.TrimPrefix(path, "/"), "/"), value); err != nil {
		return err
	}
	if text, err = json.Marshal(all); err != nil {
		return err
	}
	reflect.ValueOf(object).Elem().SetZero() // otherwise removed values would remain
	return yaml.UnmarshalStrict(text, object)
}

// changed applies an operation at a path and returns the result.
func changed(within any, op string, path []string, value any) (any, error) {
	name, last := path[0], len(path) == 1
	switch within := within.(type) {
	case map[string]any:
		field, is := within[name]
		switch {
		case !is:
			return nil, fmt.Errorf("there is no %s", name)
		case !last:
			var err error
			within[name], err = changed(field, op, path[1:], value)
			return within, err
		case op == "remove":
			delete(within, name)
			return within, nil
		case op == "replace":
			within[name] = value
			return within, nil
		}
	case []any:
		if last && op == "add" && name == "-" {
			return append(within, value), nil
		}
		i, err := strconv.Atoi(name)
		switch {
		case err != nil || i < 0 || i >= len(within):
			return nil, fmt.Errorf("there is no %s", name)
		case !last:
			within[i], err = changed(within[i], op, path[1:], value)
			return within, err
		case op == "replace":
			within[i] = value
			return within, nil
		}
	}
	return nil, errors.New("it is not understood")
}
