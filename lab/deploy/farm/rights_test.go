package farm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/lab/deploy/compose"
	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// restricted fails unless a container's process has its user, no capabilities, and no way to get any.
func restricted(t *testing.T, c *container.Container, user int) {
	t.Helper()
	status, err := c.Status()
	if err != nil {
		t.Error(err)
		return
	}
	for field, want := range map[string]string{
		"Uid": fmt.Sprintf("%d %d %d %d", user, user, user,
			user), "CapBnd": "0000000000000000", "CapEff": "0000000000000000",
		"NoNewPrivs": "1", "Seccomp": "2",
	} {
		if status[field] != want {
			t.Errorf("%s of %s is %q, want %q", field, c.Name, status[field], want)
		}
	}
}

func composeRights(t *testing.T, f *compose.Farm) {
	for service, user := range map[string]int{"tracker": 65532, "tuner": 65532, "builder": 65532, "runner": 65532,
		"prometheus": 65534} {
		for _, r := range f.Of(service) {
			restricted(t, r.Container, user)
		}
	}
}

// composeVolumes looks whether each volume is whose it should be, and whether the authority's key is in one alone.
func composeVolumes(t *testing.T, f *compose.Farm) {
	for file, want := range map[string]string{
		"authority":                        "0:0 drwxr-xr-x",
		"authority/ca.key":                 "0:0 -rw-------",
		"tracker-data":                     "65532:65532 drwxr-xr-x",
		"tracker-secrets":                  "65532:65532 drwxr-xr-x",
		"tracker-secrets/tracker.key":      "65532:65532 -rw-------",
		"agent-secrets/agent.token":        "65532:65532 -rw-------",
		"client-secrets/admin.token":       "65532:65532 -rw-------",
		"metrics-secrets":                  "65534:65534 drwx--x--x",
		"metrics-secrets/metrics.token":    "65534:65534 -rw-------",
		"metrics-secrets/grafana.password": "472:0 -rw-------",
		"tuner-cache":                      "65532:65532 drwxr-xr-x",
		"builder-cache":                    "65532:65532 drwxr-xr-x",
		"runner-cache":                     "65532:65532 drwxr-xr-x",
		"host-lock":                        "65532:65532 drwx------",
		"host-lock/host.lock":              "65532:65532 -rw-------",
		"prometheus-data":                  "65534:65534 drwxr-xr-x",
	} {
		info, err := os.Stat(f.Machine.Path("tilth_" + file))
		if err != nil {
			t.Error(err)
			continue
		}
		owner := info.Sys().(*syscall.Stat_t)
		if got := fmt.Sprintf("%d:%d %v", owner.Uid, owner.Gid, info.Mode()); got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
	keys, err := filepath.Glob(f.Machine.Path("*") + "/ca.key")
	if err != nil || len(keys) != 1 {
		t.Errorf("the authority's key is at %v, %v; want it in its own volume alone", keys, err)
	}
}

// composeNetwork looks whether agents reach the tracker and nothing beyond the farm.
func composeNetwork(ctx context.Context, t *testing.T, f *compose.Farm) {
	beyond, err := container.NewOutside(f.Machine.Net)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = beyond.Close() })
	for service, mayLeave := range map[string]bool{"tracker": true, "prometheus": true, "tuner": false,
		"builder": false, "runner": false} {
		for _, r := range f.Of(service) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			if err := r.Net.Reaches(ctx, beyond.Addr); (err == nil) != mayLeave {
				t.Errorf("%s reaches a host beyond the farm: %v, want %v", r.Name, err == nil, mayLeave)
			}
			cancel()
		}
	}
}
