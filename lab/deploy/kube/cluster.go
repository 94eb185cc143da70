package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// Cluster is a cluster of one node that has what manifests describe.
type Cluster struct {
	Machine   *container.Machine
	Manifests *Manifests
	// Dir is the folder of the kustomization; secrets are made of files there.
	Dir    string
	Images map[string]container.Image

	network *container.Network
	dns     *Pod
	pods    []*Pod
}

// Pod is a pod of the cluster. One that the manifests do not have, such as a client's, has no container.
type Pod struct {
	*container.Container
	Namespace, Name string
	Labels          map[string]string
	Net             *container.Namespace
	Addr            netip.Addr
	// NamespaceLabels are those of its namespace.
	NamespaceLabels map[string]string

	template corev1.PodSpec
	claims   []corev1.PersistentVolumeClaim
	claim    string
}

// nodeName is the name of the cluster's only node.
const nodeName = "node-1"

// Add puts a pod of another namespace into the network, before Up.
func (c *Cluster) Add(namespace string, labels map[string]string) (*Pod, error) {
	if c.network == nil {
		if err := c.makeNetwork(); err != nil {
			return nil, err
		}
	}
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	all["kubernetes.io/metadata.name"] = namespace
	p := &Pod{Namespace: namespace, Name: namespace, NamespaceLabels: all}
	return p, c.join(p)
}

// Up starts all pods, and returns when all are ready.
func (c *Cluster) Up(ctx context.Context) error {
	var err error
	if c.dns, err = c.Add("kube-system", nil); err != nil {
		return err
	}
	if _, err := container.ServeNames(c.dns.Net, c.dns.Addr, c.lookup); err != nil {
		return err
	}
	var started []*Pod
	for _, name := range slices.Sorted(maps.Keys(c.Manifests.Objects)) {
		pods, err := c.podsOf(name)
		if err != nil {
			return err
		}
		started = append(started, pods...)
	}
	// Rules name addresses, so that all have theirs first.
	if err := c.enforcePolicies(); err != nil {
		return err
	}
	for _, p := range started {
		if err := c.start(p); err != nil {
			return fmt.Errorf("pod %s: %w", p.Name, err)
		}
	}
	return c.awaitReady(ctx, started)
}

// NameServer answers for the cluster's services.
func (c *Cluster) NameServer() netip.Addr { return c.dns.Addr }

// podsOf makes the pods that a controller would.
func (c *Cluster) podsOf(object string) (pods []*Pod, err error) {
	add := func(name string, template corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) {
		p := &Pod{Namespace: c.Manifests.Kustomization.Namespace, Name: name, Labels: template.Labels,
			template: template.Spec, claims: claims, claim: name}
		p.NamespaceLabels = map[string]string{"kubernetes.io/metadata.name": p.Namespace}
		pods, err = append(pods, p), errors.Join(err, c.join(p))
	}
	switch o := c.Manifests.Objects[object].(type) {
	case *appsv1.StatefulSet:
		for i := range replicas(o.Spec.Replicas) {
			add(o.Name+"-"+strconv.Itoa(i), o.Spec.Template, o.Spec.VolumeClaimTemplates)
		}
	case *appsv1.Deployment:
		for i := range replicas(o.Spec.Replicas) {
			add(o.Name+"-5d8f-"+strconv.Itoa(i), o.Spec.Template, nil)
		}
	case *appsv1.DaemonSet:
		add(o.Name+"-7c9b", o.Spec.Template, nil)
	}
	return pods, err
}

func replicas(said *int32) int {
	if said == nil {
		return 1
	}
	return int(*said)
}

// Of are the pods of a component, by its label.
func (c *Cluster) Of(component string) (pods []*Pod) {
	for _, p := range c.pods {
		if p.Labels["app.kubernetes.io/component"] == component {
			pods = append(pods, p)
		}
	}
	return pods
}

// lookup has the cluster's services. Each leads to its pods without an address of its own.
func (c *Cluster) lookup(name string) (addrs []netip.Addr, known bool) {
	for _, o := range c.Manifests.Objects {
		service, is := o.(*corev1.Service)
		if !is || !strings.EqualFold(name, fmt.Sprintf("%s.%s.svc.cluster.local", service.Name, service.Namespace)) {
			continue
		}
		for _, p := range c.pods {
			if p.Namespace == service.Namespace && selects(service.Spec.Selector, p.Labels) {
				addrs = append(addrs, p.Addr)
			}
		}
		return addrs, true
	}
	return nil, false
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// awaitReady waits for the startup and the readiness probes of pods.
func (c *Cluster) awaitReady(ctx context.Context, pods []*Pod) error {
	failures := make([]error, len(pods))
	var all sync.WaitGroup
	for i, p := range pods {
		all.Go(func() { failures[i] = c.ready(ctx, p) })
	}
	all.Wait()
	return errors.Join(failures...)
}

func (c *Cluster) ready(ctx context.Context, p *Pod) error {
	said := p.template.Containers[0]
	if said.StartupProbe != nil {
		if err := c.probe(p, said.StartupProbe).Await(ctx, p.Container); err != nil {
			return err
		}
	}
	readiness := c.probe(p, said.ReadinessProbe)
	// A pod that is not ready waits, and is not ended.
	readiness.Retries = math.MaxInt
	return readiness.Await(ctx, p.Container)
}

// Live fails unless the liveness probes of all pods pass.
func (c *Cluster) Live(ctx context.Context) (failed error) {
	for _, p := range c.pods {
		if p.Container != nil {
			failed = errors.Join(failed, c.probe(p, p.template.Containers[0].LivenessProbe).Once(ctx))
		}
	}
	return failed
}

// Down deletes pods, agents first. Each must end within its grace period with status 0.
func (c *Cluster) Down() (failed error) {
	for _, p := range slices.Backward(c.pods) {
		if p.Container != nil {
			grace := 30 * time.Second
			if said := p.template.TerminationGracePeriodSeconds; said != nil {
				grace = time.Duration(*said) * time.Second
			}
			failed = errors.Join(failed, p.Stop(grace))
		}
	}
	return failed
}
