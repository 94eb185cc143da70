package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	serving "github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// Timeouts of a campaign's tracker are as short as its faults.
const (
	heartbeatInterval = 100 * time.Millisecond
	leaseTimeout      = time.Second
	grace             = 2 * time.Second
	firstRetry        = 20 * time.Millisecond
	maxRetry          = 200 * time.Millisecond
	outageWait        = 1500 * time.Millisecond
	firstCooldown     = 50 * time.Millisecond
	maxCooldown       = 400 * time.Millisecond
)

// Names in a tracker's folder.
const (
	recordsName   = "tilth.db"
	artifactsName = "artifacts"
	clockName     = "clock"
)

// runShards runs a tracker that shares a database with others, until ctx ends. Each tracker has some of the shards.
// dir holds the artifacts of all, and clock names the file of this tracker's clocks; see runTracker.
func runShards(ctx context.Context, dir, listen, store string, shards int, clock string, ready io.Writer, log *slog.Logger) error {
	c := &shiftedClock{path: filepath.Join(dir, clock), began: time.Now()}
	if err := c.read(); err != nil {
		return err
	}
	defer c.follow(log)()
	return serving.RunTracker(ctx, serving.TrackerConfig{
		Store: store, Shards: shards, Listen: listen,
		Tracker: tracker.Config{
			ArtifactsDir: filepath.Join(dir, artifactsName), Logger: log, Now: c.onWall, Clock: c.even,
			HeartbeatInterval: heartbeatInterval, LeaseTimeout: leaseTimeout, Grace: grace, OutageWait: outageWait,
			FirstRetry: firstRetry, MaxRetry: maxRetry, FirstCooldown: firstCooldown, MaxCooldown: maxCooldown,
		},
		Ready: func(net.Addr, net.Addr) { fmt.Fprintln(ready, "ready") },
	})
}

// runTracker runs a tracker on the data in dir, until ctx ends or its disk fails. It writes a line to ready when it
// serves. The file "clock" in dir shifts its clocks relative to the machine's. The first value shifts the wall clock,
// which can be set. The second shifts the clock of deadlines, which stops with the machine. The third is the speed of
// the latter. SIGUSR1 makes the tracker reread the file.
//
// If secrets is not empty, it is a folder with a certificate and tokens, and callers must authenticate.
func runTracker(ctx context.Context, dir, listen, secrets string, ready io.Writer, log *slog.Logger) error {
	clock := &shiftedClock{path: filepath.Join(dir, clockName), began: time.Now()}
	if err := clock.read(); err != nil {
		return err
	}
	defer clock.follow(log)()
	db, err := bolt.Open(filepath.Join(dir, recordsName), bolt.Options{LockTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, db, dir, listen, secrets, ready, log, clock), db.Close())
}

func serve(ctx context.Context, db *bolt.DB, dir, listen, secrets string, ready io.Writer, log *slog.Logger, clock *shiftedClock) error {
	var security tracker.Security
	if secrets != "" {
		var err error
		if security, err = readSecrets(secrets, log); err != nil {
			return err
		}
	}
	t, err := tracker.New(tracker.Config{
		Store: db, ArtifactsDir: filepath.Join(dir, artifactsName), Logger: log, Now: clock.onWall, Clock: clock.even,
		HeartbeatInterval: heartbeatInterval, LeaseTimeout: leaseTimeout, Grace: grace, FirstRetry: firstRetry, MaxRetry: maxRetry,
		OutageWait: outageWait, FirstCooldown: firstCooldown, MaxCooldown: maxCooldown, Security: security,
	})
	if err != nil {
		return err
	}
	l, err := tracker.Listen(listen)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(ready, "ready"); err != nil {
		return errors.Join(err, l.Close())
	}
	return t.Serve(ctx, l, nil)
}

// shiftedClock is a pair of clocks that can be shifted.
type shiftedClock struct {
	path                   string
	began                  time.Time
	wallShift, evenlyShift atomic.Int64
	pace                   atomic.Uint64 // float bits; 0 = the machine's
}

func (c *shiftedClock) onWall() time.Time { return time.Now().Add(time.Duration(c.wallShift.Load())) }

func (c *shiftedClock) even() time.Time {
	now := time.Now().Add(time.Duration(c.evenlyShift.Load()))
	if pace := math.Float64frombits(c.pace.Load()); pace > 0 {
		now = now.Add(time.Duration((pace - 1) * float64(time.Since(c.began))))
	}
	return now
}

func (c *shiftedClock) read() error {
	text, err := os.ReadFile(c.path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(text) == 0 { // the disk was full when it was written
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	words := strings.Fields(string(text))
	if len(words) != 3 {
		return fmt.Errorf("read the clock: %q is not two shifts and a pace", text)
	}
	onWall, err := time.ParseDuration(words[0])
	evenly, err2 := time.ParseDuration(words[1])
	pace, err3 := strconv.ParseFloat(words[2], 64)
	if err := errors.Join(err, err2, err3); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	c.wallShift.Store(int64(onWall))
	c.evenlyShift.Store(int64(evenly))
	c.pace.Store(math.Float64bits(pace))
	return nil
}

// follow rereads the clock at each signal until stop is called.
func (c *shiftedClock) follow(log *slog.Logger) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, unix.SIGUSR1)
	go func() {
		defer close(done)
		for range signals {
			if err := c.read(); err != nil {
				log.Error("clock not read", "error", err)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}
