package kube

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// volumes makes a pod's volumes, with the owners and modes that a node gives them, and returns their folders.
func (c *Cluster) volumes(p *Pod) (map[string]string, error) {
	group := int(*p.template.SecurityContext.FSGroup)
	folders := map[string]string{}
	for _, v := range p.template.Volumes {
		dir := filepath.Join(c.Machine.Dir, "pods", p.Name, v.Name)
		folders[v.Name] = dir
		var err error
		switch {
		case v.EmptyDir != nil:
			err = groupFolder(dir, group, 0o777)
		case v.Secret != nil:
			err = c.secretFolder(dir, v.Secret, group)
		default:
			err = fmt.Errorf("the type of the volume %s is not understood", v.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, claim := range p.claims {
		// Claims outlive the pod.
		dir := filepath.Join(c.Machine.Dir, "claims", claim.Name+"-"+p.claim)
		folders[claim.Name] = dir
		if err := groupFolder(dir, group, 0o775); err != nil {
			return nil, err
		}
	}
	return folders, nil
}

// groupFolder makes a folder of root's that a group may write to, and whose files are the group's.
func groupFolder(dir string, group int, mode os.FileMode) error {
	return errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, 0, group), os.Chmod(dir, mode|os.ModeSetgid))
}

// secretFolder has a secret's files as links into a folder that is replaced as one.
func (c *Cluster) secretFolder(dir string, s *corev1.SecretVolumeSource, group int) error {
	i := slices.IndexFunc(c.Manifests.Kustomization.SecretGenerator,
		func(made Secret) bool { return made.Name == s.SecretName })
	if i < 0 {
		return fmt.Errorf("there is no secret %s", s.SecretName)
	}
	const version = "..2026_01_01"
	if err := errors.Join(groupFolder(dir, group, 0o777),
		groupFolder(filepath.Join(dir, version), group, 0o755)); err != nil {
		return err
	}
	if err := os.Symlink(version, filepath.Join(dir, "..data")); err != nil {
		return err
	}
	for _, file := range c.Manifests.Kustomization.SecretGenerator[i].Files {
		text, err := os.ReadFile(filepath.Join(c.Dir, file))
		if err != nil {
			return fmt.Errorf("secret %s: %w", s.SecretName, err)
		}
		name := filepath.Base(file)
		at := filepath.Join(dir, version, name)
		err = errors.Join(os.WriteFile(at, text, 0o600), os.Chown(at, 0, group), os.Chmod(at, os.FileMode(*s.DefaultMode)),
			os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
		if err != nil {
			return err
		}
	}
	return nil
}
