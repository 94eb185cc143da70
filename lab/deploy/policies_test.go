package deploy

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// place is a pod, or a host outside the cluster if the namespace is empty.
type place struct {
	namespace               string
	labels, namespaceLabels map[string]string
}

// TestNetworkPoliciesSeparatePods evaluates the network policies for connections between pods.
func TestNetworkPoliciesSeparatePods(t *testing.T) {
	pod := func(namespace string, own, more map[string]string) place {
		named := map[string]string{"kubernetes.io/metadata.name": namespace}
		maps.Copy(named, more)
		return place{namespace, own, named}
	}
	places := map[string]place{
		"client":     pod("lab", nil, map[string]string{"tilth.dev/clients": "true"}),
		"monitoring": pod("monitoring", nil, nil), "other": pod("other", nil, nil), "outside": {},
	}
	for name, template := range pods(t, folders[0]) {
		places[name] = pod("tilth", template.Labels, nil)
	}
	var policies []*networkingv1.NetworkPolicy
	for _, o := range manifests(t, folders[0]) {
		if p, is := o.(*networkingv1.NetworkPolicy); is {
			policies = append(policies, p)
		}
	}
	for _, way := range []struct {
		from, to string
		port     int
		open     bool
	}{
		{"tuner", "tracker", 9190, true},
		{"builder", "tracker", 9190, true},
		{"runner", "tracker", 9190, true},
		{"runner", "tracker", 9191, false},
		{"runner", "builder", 9192, false},
		{"runner", "outside", 443, false},
		{"tracker", "outside", 443, false},
		{"client", "tracker", 9190, true},
		{"client", "tracker", 9191, false},
		{"client", "outside", 443, true},
		{"monitoring", "tracker", 9191, true},
		{"monitoring", "tuner", 9192, true},
		{"monitoring", "tracker", 9190, false},
		{"other", "tracker", 9190, false},
		{"other", "runner", 9192, false},
	} {
		from, to := places[way.from], places[way.to]
		out := permits(policies, networkingv1.PolicyTypeEgress, from, to, way.port)
		in := permits(policies, networkingv1.PolicyTypeIngress, to, from, way.port)
		if got := out && in; got != way.open {
			t.Errorf("%s reaches port %d of %s: %v, want %v", way.from, way.port, way.to, got, way.open)
		}
	}
}

// permits reports whether the policies that select a pod permit traffic with a peer. A direction without policies is
// open.
func permits(policies []*networkingv1.NetworkPolicy, direction networkingv1.PolicyType, pod, peer place, port int) bool {
	open := true
	for _, p := range policies {
		if p.Namespace != pod.namespace || !matches(&p.Spec.PodSelector, pod.labels) || !slices.Contains(p.Spec.PolicyTypes, direction) {
			continue
		}
		open = false
		for _, rule := range p.Spec.Ingress {
			if direction == networkingv1.PolicyTypeIngress && rulePermits(p.Namespace, rule.From, rule.Ports, peer, port) {
				return true
			}
		}
		for _, rule := range p.Spec.Egress {
			if direction == networkingv1.PolicyTypeEgress && rulePermits(p.Namespace, rule.To, rule.Ports, peer, port) {
				return true
			}
		}
	}
	return open
}

func rulePermits(namespace string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, other place, port int) bool {
	named := slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.NamespaceSelector == nil && other.namespace != namespace || p.NamespaceSelector != nil && !matches(p.NamespaceSelector, other.namespaceLabels) {
			return false
		}
		return p.PodSelector == nil || matches(p.PodSelector, other.labels)
	})
	return named && slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.String() == fmt.Sprint(port) })
}

func matches(selector *metav1.LabelSelector, of map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(of))
}
