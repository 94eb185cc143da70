package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
)

// loss is the loss of a farm's records during its work, and their restoration from a backup.
type loss struct {
	backupAt time.Duration // since the start of the round
	after    time.Duration // since the backup
	// rot lists the bits of the records file that flip before the loss. The tracker continues with them for a while.
	rot []int64
	// artifacts is set if the artifacts are lost, too. Backups do not contain them.
	artifacts bool
}

func (d *draw) loss() *loss {
	l := &loss{
		backupAt: d.span(d.within/8, d.within/2), after: d.span(50*time.Millisecond, 1500*time.Millisecond), artifacts: d.IntN(2) == 0,
	}
	if d.IntN(2) == 0 {
		for range 1 + d.IntN(200) {
			l.rot = append(l.rot, d.Int64())
		}
	}
	return l
}

func (l *loss) String() string {
	what := "the records"
	if l.artifacts {
		what += " and all artifacts"
	}
	return fmt.Sprintf("%v backup; %v later %d bits flip, and %s are lost and restored",
		l.backupAt.Round(time.Millisecond), l.after.Round(time.Millisecond), len(l.rot), what)
}

// gap is the interval whose work is lost, from the start of the backup to the end of its restoration, on the
// machine's monotonic clock.
type gap struct {
	From      int64 `json:"from"`
	To        int64 `json:"to"`
	Artifacts bool  `json:"artifacts"`
}

// gapName is the name of the gap's file, beside the journals.
const gapName = "gap"

func (g *gap) write(journals string) error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(journals, gapName), text, 0o644)
}

// readGap returns a round's gap, or nil.
func readGap(journals string) (*gap, error) {
	text, err := os.ReadFile(filepath.Join(journals, gapName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g := &gap{}
	return g, json.Unmarshal(text, g)
}

// follow runs the client. If the records are lost meanwhile, a second client repeats its part after the restoration.
func (r *round) follow(ctx context.Context, interventions []intervention) (map[string][]*tilthv1.JobEvent, error) {
	if r.lost == nil {
		return r.farm.follow(ctx, 0, interventions, r.Spec)
	}
	if err := r.lose(ctx, r.lost, interventions); err != nil {
		return nil, err
	}
	return r.farm.follow(ctx, 1, resuming(interventions), r.Spec)
}

// resuming returns interventions that resume the jobs that a previous client may have left paused.
func resuming(before []intervention) []intervention {
	now := make([]intervention, len(before))
	for n, w := range before {
		if w.method == "pause" {
			now[n] = intervention{method: w.method, lasts: 50 * time.Millisecond}
		}
	}
	return now
}

// lose runs a client until the records are lost, and restores them.
func (r *round) lose(ctx context.Context, lost *loss, interventions []intervention) error {
	following, stop := context.WithCancel(ctx)
	var first sync.WaitGroup
	first.Go(func() { _, _ = r.farm.follow(following, 0, interventions, r.Spec) }) // interrupted by the loss
	defer first.Wait()
	defer stop()
	if err := retry.Sleep(ctx, lost.backupAt); err != nil {
		return err
	}
	backup := filepath.Join(r.Dir, "backup.db")
	g := &gap{Artifacts: lost.artifacts}
	for g.From = monotonic(); r.farm.backUp(ctx, backup) != nil; g.From = monotonic() { // until no fault prevents it
		if err := retry.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	if err := retry.Sleep(ctx, lost.after); err != nil {
		return err
	}
	path := filepath.Join(r.farm.data(), recordsName)
	if len(lost.rot) > 0 {
		r.happened("bit rot in the records")
		for _, bit := range lost.rot {
			if err := flipBit(path, bit); err != nil && !errors.Is(err, unix.ENOSPC) { // a hole on a full disk
				return err
			}
		}
		r.farm.tracker.kill(false)
		if err := retry.Sleep(ctx, lost.after); err != nil {
			return err
		}
	}
	r.happened("restored from a backup")
	r.farm.tracker.kill(true)
	defer r.farm.tracker.release()
	stop()
	first.Wait()
	if lost.artifacts {
		if err := os.RemoveAll(filepath.Join(r.farm.data(), artifactsName)); err != nil {
			return err
		}
	}
	if err := r.restore(ctx, backup, path); err != nil {
		return err
	}
	g.To = monotonic()
	return g.write(r.farm.journals())
}

// restore replaces the records by the backup, once the disk has space.
func (r *round) restore(ctx context.Context, backup, path string) error {
	for {
		_, err := bolt.Restore(ctx, backup, path, time.Now())
		if !errors.Is(err, unix.ENOSPC) || retry.Sleep(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}

// backUp writes a backup of the tracker to a file. Its timeout suffices if no fault interferes.
func (f *farm) backUp(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, impatient.Try)
	defer cancel()
	c, err := client.Dial("unix:"+f.socket(), quiet)
	if err != nil {
		return err
	}
	defer c.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = c.Backup(ctx, file)
	return errors.Join(err, file.Close())
}

// has reports whether the call's effect may be lost: it was not answered before the gap and not made after
// it. It is false without a gap.
func (g *gap) has(c *call) bool { return g != nil && c.end > g.From && c.begin < g.To }

// ofLostLife reports whether a call was made after the gap under a lease from before its end.
func (c *checker) ofLostLife(call *call, token *tilthv1.LeaseToken) bool {
	lease, known := c.leases[tokenKey(token)]
	return c.gap != nil && known && call.begin >= c.gap.To && lease.begin < c.gap.To
}

// checkLives checks that after the gap nothing is accepted under an earlier lease, except what may have been
// accepted before the gap.
func (c *checker) checkLives() {
	sent := map[string]bool{}
	for _, call := range c.calls {
		a, is := c.reported(call)
		if !is {
			continue
		}
		key := call.method + tokenKey(a.token)
		if call.accepted() && c.ofLostLife(call, a.token) && !sent[key] {
			c.violation("%v: a report under a lease of the life that was lost was accepted", call)
		}
		sent[key] = sent[key] || c.gap != nil && call.begin < c.gap.From
	}
}
