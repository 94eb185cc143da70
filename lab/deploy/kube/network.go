package kube

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// makeNetwork makes the network of all pods. Their node has its first address.
func (c *Cluster) makeNetwork() (err error) {
	if err = container.Forward(c.Machine.Net); err == nil {
		c.network, err = container.NewNetwork(c.Machine.Net, "pods", netip.MustParsePrefix("10.244.0.0/24"), false)
	}
	return err
}

// join gives a pod its place in the network.
func (c *Cluster) join(p *Pod) (err error) {
	if p.Net, err = container.NewNamespace(); err != nil {
		return err
	}
	if p.Addr, err = c.network.Attach(p.Net); err != nil {
		return err
	}
	c.pods = append(c.pods, p)
	return nil
}

// enforcePolicies gives the kernel the network policies as rules of each pod's namespace.
func (c *Cluster) enforcePolicies() error {
	for _, p := range c.pods {
		rules, err := c.rules(p)
		if err != nil {
			return fmt.Errorf("network policies of pod %s: %w", p.Name, err)
		}
		err = p.Net.Do(func() error {
			nft := exec.Command("nft", "-f", "-")
			nft.Stdin = strings.NewReader(rules)
			if said, err := nft.CombinedOutput(); err != nil {
				return fmt.Errorf("nft: %w: %s\n%s", err, said, rules)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rules are the policies that select a pod, for nft. A direction that no policy restricts is open. Its node may always
// call it.
func (c *Cluster) rules(p *Pod) (string, error) {
	in, out := &chain{hook: "input", peer: "saddr"}, &chain{hook: "output", peer: "daddr"}
	for _, o := range c.Manifests.Objects {
		policy, is := o.(*networkingv1.NetworkPolicy)
		if !is || policy.Namespace != p.Namespace || !matches(&policy.Spec.PodSelector, p.Labels) {
			continue
		}
		for _, direction := range policy.Spec.PolicyTypes {
			switch direction {
			case networkingv1.PolicyTypeIngress:
				in.closed = true
				for _, rule := range policy.Spec.Ingress {
					in.allow(c.peers(policy.Namespace, rule.From), rule.Ports)
				}
			case networkingv1.PolicyTypeEgress:
				out.closed = true
				for _, rule := range policy.Spec.Egress {
					out.allow(c.peers(policy.Namespace, rule.To), rule.Ports)
				}
			default:
				return "", fmt.Errorf("the direction %q of %s is not understood", direction, policy.Name)
			}
		}
	}
	return "table ip policies {\n" + in.String() + out.String() + "}\n", nil
}

// peers are the addresses of the pods that a rule names.
func (c *Cluster) peers(namespace string, said []networkingv1.NetworkPolicyPeer) (addrs []string) {
	for _, p := range c.pods {
		for _, peer := range said {
			here := peer.NamespaceSelector == nil && p.Namespace == namespace || peer.NamespaceSelector != nil &&
				matches(peer.NamespaceSelector, p.NamespaceLabels)
			if here && (peer.PodSelector == nil || matches(peer.PodSelector, p.Labels)) {
				addrs = append(addrs, p.Addr.String())
			}
		}
	}
	return addrs
}

func matches(selector *metav1.LabelSelector, of map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(of))
}

// chain lists the traffic allowed in one direction.
type chain struct {
	hook, peer string
	closed     bool
	rules      []string
}

func (c *chain) allow(peers []string, ports []networkingv1.NetworkPolicyPort) {
	if len(peers) == 0 {
		return
	}
	for _, port := range ports {
		protocol := "tcp"
		if port.Protocol != nil {
			protocol = strings.ToLower(string(*port.Protocol))
		}
		c.rules = append(c.rules, fmt.Sprintf("ip %s { %s } %s dport %d accept", c.peer, strings.Join(peers, ", "),
			protocol, port.Port.IntValue()))
	}
}

// node is the address of who probes.
const node = "10.244.0.1"

func (c *chain) String() string {
	policy, rules := "accept", c.rules
	if c.closed {
		policy = "drop"
		rules = append([]string{"ct state established,related accept", `meta iifname "lo" accept`}, rules...)
		if c.hook == "output" {
			rules[1] = `meta oifname "lo" accept`
		} else {
			rules = append(rules, "ip saddr "+node+" accept")
		}
	}
	return fmt.Sprintf("chain %s {\ntype filter hook %s priority 0; policy %s;\n%s\n}\n", c.hook, c.hook, policy,
		strings.Join(rules, "\n"))
}
