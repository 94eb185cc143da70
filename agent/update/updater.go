package update

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Config is what an Updater needs. All but Downgrade are required.
type Config struct {
	// Key is whose releases are taken.
	Key signing.PublicKey
	// Program is the path of the program that runs, which is replaced; files beside it begin with its name.
	Program string
	// Version is the program's, Static says whether it is one for systems without a dynamic linker.
	Version string
	Static  bool
	// Every is how often the tracker is asked.
	Every time.Duration
	// Trial is how long a new program may take to join the farm.
	Trial time.Duration
	// Downgrade takes older versions, too.
	Downgrade bool
	Logger    *slog.Logger
}

// Updater looks for releases while an agent runs.
type Updater struct {
	cfg Config
	// said is the last complaint, which is not repeated.
	said string
}

// New returns an updater. The error says why the program cannot be replaced.
func New(cfg Config) (*Updater, error) {
	if err := unix.Access(filepath.Dir(cfg.Program), unix.W_OK); err != nil {
		return nil, fmt.Errorf("update: this user cannot replace %s: %w: install the program in a folder of the user's", cfg.Program, err)
	}
	if _, err := parseVersion(cfg.Version); err != nil && !cfg.Downgrade {
		return nil, fmt.Errorf("update: %w, so nothing is newer: allow any version, or install a release first", err)
	}
	return &Updater{cfg: cfg}, nil
}

// next, archive, old and refused are files beside the program.
func (u *Updater) next() string    { return u.cfg.Program + ".next" }
func (u *Updater) archive() string { return u.cfg.Program + ".next.tar.gz" }
func (u *Updater) old() string     { return u.cfg.Program + ".old" }
func (u *Updater) refused() string { return u.cfg.Program + ".refused" }

// Watch asks the tracker until it has brought a newer program, and returns its version; or until ctx ends, and returns
// an empty one.
func (u *Updater) Watch(ctx context.Context, conn grpc.ClientConnInterface) string {
	client := tilthv1.NewReleaseServiceClient(conn)
	wait := u.cfg.Every / 10 // agents that began at once do not ask at once
	for {
		timer := time.NewTimer(wait + rand.N(wait+1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ""
		case <-timer.C:
		}
		wait = u.cfg.Every
		version, err := u.bring(ctx, client)
		if version != "" {
			u.cfg.Logger.Info("the tracker offers a newer release: draining, to try it", "version", version, "own", u.cfg.Version)
			return version
		}
		u.complain(err)
	}
}

// complain logs what is wrong with a release, once.
func (u *Updater) complain(err error) {
	if err == nil {
		u.said = ""
		return
	}
	if words := wire.Words(err); words != u.said {
		u.said = words
		u.cfg.Logger.Warn("the release that the tracker offers is not taken", "error", words)
	}
}

// bring brings a newer program, and returns its version; empty where there is none.
func (u *Updater) bring(ctx context.Context, client tilthv1.ReleaseServiceClient) (string, error) {
	offer, err := client.GetRelease(ctx, &tilthv1.GetReleaseRequest{})
	switch status.Code(err) {
	case codes.OK:
	case codes.NotFound, codes.Unimplemented, codes.Canceled, codes.Unavailable: // there is none, or the agent itself tells
		return "", nil
	default:
		return "", err
	}
	r, err := verified(offer, u.cfg.Key)
	if err != nil {
		return "", err
	}
	if wanted, err := u.wanted(r.version); !wanted {
		return "", err
	}
	name := "tilth-" + r.version + "-linux-" + runtime.GOARCH
	if u.cfg.Static {
		name += "-static"
	}
	digest, ok := r.digests[name+".tar.gz"]
	if !ok {
		return "", fmt.Errorf("release %s has no %s.tar.gz for this machine", r.version, name)
	}
	defer os.Remove(u.archive())
	if err := fetch(ctx, client, name+".tar.gz", digest, u.archive()); err != nil {
		return "", fmt.Errorf("release %s: %w", r.version, err)
	}
	if err := unpack(u.archive(), name+"/tilth", u.next()); err != nil {
		return "", fmt.Errorf("release %s: unpacking %s.tar.gz: %w", r.version, name, err)
	}
	return r.version, nil
}

// wanted reports whether a version is to replace this one. The error says why not, where somebody may be surprised.
func (u *Updater) wanted(offered string) (bool, error) {
	if offered == u.cfg.Version {
		return false, nil
	}
	if version, why := u.Refused(); version == offered {
		return false, fmt.Errorf("release %s failed here before: %s: remove %s to try it again", offered, why, u.refused())
	}
	if u.cfg.Downgrade {
		return true, nil
	}
	own, err := parseVersion(u.cfg.Version)
	if err != nil {
		return false, err
	}
	other, err := parseVersion(offered)
	if err != nil {
		return false, err
	}
	switch c := other.compare(own); {
	case c > 0:
		return true, nil
	case c < 0:
		return false, fmt.Errorf("release %s is older than this program, %s", offered, u.cfg.Version)
	}
	return false, nil
}

// mostRefused bounds what is read of the note about a release that failed.
const mostRefused = 1 << 10

// Refused is the last version that failed on trial, and why; empty where none did.
func (u *Updater) Refused() (version, why string) {
	data, err := os.ReadFile(u.refused())
	if err != nil {
		return "", ""
	}
	version, why, _ = strings.Cut(strings.TrimSpace(string(data[:min(len(data), mostRefused)])), "\n")
	return version, why
}

// Refuse notes that a version failed, so that it is not tried again.
func (u *Updater) Refuse(version string, why error) error {
	line := strings.Join(strings.Fields(why.Error()), " ")
	return errors.Join(os.Remove(u.next()), os.WriteFile(u.refused(), []byte(version+"\n"+line[:min(len(line), mostRefused/2)]+"\n"), 0o644))
}
