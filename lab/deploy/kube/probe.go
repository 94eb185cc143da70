package kube

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// probe converts a pod's probe, with the API's defaults.
func (c *Cluster) probe(p *Pod, said *corev1.Probe) container.Probe {
	client := &http.Client{Transport: &http.Transport{
		DialContext: c.Machine.Net.Dial, DisableKeepAlives: true,
		// Nodes do not know who signed it.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as Kubernetes does
	}}
	return container.Probe{
		Test: func(ctx context.Context) error {
			if said.HTTPGet == nil {
				return fmt.Errorf("the probe of %s is not understood", p.Name)
			}
			return get(ctx, client, probeURL(p, said.HTTPGet))
		},
		Delay: seconds(said.InitialDelaySeconds, 0), Interval: seconds(said.PeriodSeconds,
			10), Timeout: seconds(said.TimeoutSeconds, 1),
		Retries: retries(said.FailureThreshold),
	}
}

func probeURL(p *Pod, g *corev1.HTTPGetAction) string {
	port := int(g.Port.IntVal)
	for _, named := range p.template.Containers[0].Ports {
		if named.Name == g.Port.StrVal {
			port = int(named.ContainerPort)
		}
	}
	scheme := strings.ToLower(string(g.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	return scheme + "://" + net.JoinHostPort(p.Addr.String(), strconv.Itoa(port)) + g.Path
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}

func seconds(said, usual int32) time.Duration {
	if said == 0 {
		said = usual
	}
	return time.Duration(said) * time.Second
}

func retries(said int32) int {
	if said == 0 {
		return 3
	}
	return int(said)
}
