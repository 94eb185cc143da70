package chaos

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
)

// incidents records what happened to a farm. It is safe for concurrent use.
type incidents struct {
	mu     sync.Mutex
	counts map[string]int // of faults, by kind
	deaths []string       // unexpected ends
}

// happened counts a fault.
func (i *incidents) happened(kind string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.counts[kind]++
}

// died records an unexpected end.
func (i *incidents) died(how string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deaths = append(i.deaths, how)
}

// crashes returns the ends of processes that no fault explains. Agents never end by themselves. For trackers, excused
// reports which ends are expected.
func (i *incidents) crashes(processes []*process, excused func(how string) bool) (out []string) {
	for _, p := range processes {
		text, err := os.ReadFile(p.log)
		if err != nil {
			continue // no log was written
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "WARNING: DATA RACE") {
				out = append(out, p.name+": "+strings.TrimSpace(line))
			}
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, how := range i.deaths {
		if !strings.HasPrefix(how, trackerName) || !excused(how) {
			out = append(out, how)
		}
	}
	return out
}

// byItsOwnWord excuses a tracker that ends on an unrecoverable error such as a full disk, as one with a records file
// does.
func byItsOwnWord(string) bool { return true }

// byFailpoint only excuses a tracker killed by a failpoint. A tracker with a database waits for the database instead
// of ending.
func byFailpoint(how string) bool { return strings.HasSuffix(how, syscall.SIGKILL.String()) }

// inject injects one fault into a round. It also ends the fault when ctx ends.
func inject[R interface{ happened(kind string) }](ctx context.Context, r R, f *faultOf[R]) {
	if retry.Sleep(ctx, f.At) != nil {
		return
	}
	r.happened(f.Kind)
	f.begin(r)
	_ = retry.Sleep(ctx, f.For)
	f.end(r)
}

// describeIncidents returns descriptions of the faults and of the client's interventions, which it counts.
func describeIncidents[R any](i *incidents, faults []*faultOf[R], interventions []intervention) (descriptions []string) {
	for _, f := range faults {
		descriptions = append(descriptions, f.String())
	}
	for n, w := range interventions {
		if w.method != "" {
			descriptions = append(descriptions, fmt.Sprintf("%v job %d: %s for %v", w.at.Round(time.Millisecond), n, w.method, w.lasts.Round(time.Millisecond)))
			i.happened("client: " + w.method)
		}
	}
	return descriptions
}
