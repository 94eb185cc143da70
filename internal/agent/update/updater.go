package update

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Config configures an Updater. All fields except Downgrade and Lock are required.
type Config struct {
	// Key verifies releases.
	Key signing.PublicKey
	// Program is the path of the running program, which is replaced. Related files start with its name.
	Program string
	// Version is the version of the program. Static is set for a statically linked one.
	Version string
	Static  bool
	// Every is the minimum time between requests to the tracker, and half of the maximum. It is also the
	// minimum time between two trials.
	Every time.Duration
	// Trial is the time limit for a new program to join the farm.
	Trial time.Duration
	// Downgrade also accepts older versions.
	Downgrade bool
	// Lock, if set, is the host's lock: downloading and unpacking wait while something is timed.
	Lock   *hostlock.Lock
	Logger *slog.Logger
}

// Updater looks for releases while an agent runs.
type Updater struct {
	cfg Config
	// lastProblem is the last logged problem, which is not repeated.
	lastProblem string
	// locked is the open lock file during an update.
	locked *os.File
	// digest is the digest of the downloaded program.
	digest string
	// damaged skips archives by digest; tried skips versions.
	damaged, tried pause
	// reason is why the archive is damaged.
	reason error
	// lastTrial is the time of the last trial.
	lastTrial time.Time
	// last is the latest failure. unwritten lists failed versions that could not be recorded in the file.
	last      failure
	unwritten []failure
}

// New returns an updater, or an error if the program cannot be replaced.
func New(cfg Config) (*Updater, error) {
	if err := ownFolder(filepath.Dir(cfg.Program)); err != nil {
		return nil, fmt.Errorf("update: this user cannot replace %s: %w: install the program in a folder of the user's", cfg.Program, err)
	}
	if _, err := parseVersion(cfg.Version); err != nil && !cfg.Downgrade {
		return nil, fmt.Errorf("update: %w, so nothing is newer: allow any version, or install a release first", err)
	}
	return &Updater{cfg: cfg}, nil
}

// ownFolder checks that only this user can write to a folder.
func ownFolder(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return err
	}
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return err
	}
	if int(info.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if info.Mode&0o022 != 0 {
		return fmt.Errorf("others may write to %s", path)
	}
	return nil
}

// next, archive, old and refused return paths of files beside the program.
func (u *Updater) next() string    { return u.cfg.Program + ".next" }
func (u *Updater) archive() string { return u.cfg.Program + ".next.tar.gz" }
func (u *Updater) old() string     { return u.cfg.Program + ".old" }
func (u *Updater) refused() string { return u.cfg.Program + ".refused" }

// Watch polls the tracker until it has downloaded a newer program and returns its version, or until ctx ends
// and returns "".
func (u *Updater) Watch(ctx context.Context, conn grpc.ClientConnInterface) string {
	client := tilthv1.NewReleaseServiceClient(conn)
	wait := u.cfg.Every / 10 // spread the first requests of agents that started together
	for {
		timer := time.NewTimer(wait + rand.N(wait+1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ""
		case <-timer.C:
		}
		wait = u.cfg.Every
		version, err := u.download(ctx, client)
		if version != "" {
			u.cfg.Logger.Info("the tracker offers a newer release: draining, to try it", "version", version, "own", u.cfg.Version)
			return version
		}
		u.logOnce(err)
	}
}

// logOnce logs a problem of a release, once.
func (u *Updater) logOnce(err error) {
	if err == nil {
		u.lastProblem = ""
		return
	}
	if words := wire.ErrorText(err); words != u.lastProblem {
		u.lastProblem = words
		u.cfg.Logger.Warn("the release that the tracker offers is not taken", "error", words)
	}
}

// download downloads a newer program and returns its version, or "" if no newer version is available.
func (u *Updater) download(ctx context.Context, client tilthv1.ReleaseServiceClient) (string, error) {
	offer, err := client.GetRelease(ctx, &tilthv1.GetReleaseRequest{})
	switch status.Code(err) {
	case codes.OK:
	case codes.NotFound, codes.Unimplemented, codes.Canceled, codes.Unavailable: // no release, or the agent reports the outage itself
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
	if u.tried.holds(r.version) || time.Since(u.lastTrial) < u.cfg.Every {
		return "", nil
	}
	if u.damaged.holds(digest) {
		return "", u.reason
	}
	if locked, err := u.lock(); !locked {
		return "", err
	}
	if u.digest, err = u.get(ctx, client, name, digest); err != nil {
		return "", u.recordDamage(ctx, digest, fmt.Errorf("release %s: %w", r.version, err))
	}
	return r.version, nil
}

// recordDamage records a failed download, so that the archive is skipped for a while, unless the connection was the
// cause.
func (u *Updater) recordDamage(ctx context.Context, digest string, why error) error {
	_ = os.Remove(u.next()) // usually it does not exist
	u.unlock()
	switch status.Code(why) {
	case codes.Canceled, codes.Unavailable, codes.DeadlineExceeded:
		return why
	}
	if ctx.Err() == nil {
		u.damaged.failed(digest, u.cfg.Every)
		u.reason = why
	}
	return why
}

// wanted reports whether a version should replace the current one. The error explains surprising refusals.
func (u *Updater) wanted(offered string) (bool, error) {
	if offered == u.cfg.Version {
		return false, nil
	}
	for _, f := range u.failures() {
		if f.version == offered {
			return false, fmt.Errorf("release %s failed here before: %s: remove %s to try it again", offered, f.why, u.refused())
		}
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

// maxPause bounds how long a failed item is skipped.
const maxPause = 24 * time.Hour

// pause skips a failed item, for longer after each failure.
type pause struct {
	of    string
	times int
	until time.Time
}

// failed records a failure of an item.
func (p *pause) failed(of string, first time.Duration) {
	if p.of != of {
		*p = pause{of: of}
	}
	p.until = time.Now().Add(max(first, min(first<<min(p.times, 8), maxPause)))
	p.times++
}

// holds reports whether an item is being skipped.
func (p *pause) holds(of string) bool { return p.of == of && time.Now().Before(p.until) }
