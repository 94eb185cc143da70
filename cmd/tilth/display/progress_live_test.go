package display

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// screen emulates a terminal for the control sequences of a Live display.
type screen struct {
	mu            sync.Mutex
	lines         []string
	row           int
	width, height int
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := p; len(rest) > 0; {
		switch {
		case bytes.HasPrefix(rest, []byte("\x1b[K")):
			rest = rest[3:]
		case bytes.HasPrefix(rest, []byte("\x1b[J")):
			s.lines = s.lines[:s.row]
			rest = rest[3:]
		case bytes.HasPrefix(rest, []byte("\r\x1b[")):
			up, after, _ := bytes.Cut(rest[3:], []byte("A"))
			for _, digit := range up[:len(up)-1] {
				s.row -= int(digit-'0') * 10
			}
			s.row -= int(up[len(up)-1] - '0')
			rest = after
		default:
			line, after, _ := bytes.Cut(rest, []byte("\n"))
			text, _, _ := strings.Cut(string(line), "\x1b")
			s.lines = append(s.lines[:s.row], append([]string{text}, s.lines[min(s.row+1, len(s.lines)):]...)...)
			s.row++
			rest = after
		}
	}
	return len(p), nil
}

func (s *screen) size() (int, int) { return s.width, s.height }

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func TestLiveDrawsInPlaceAndLeavesTheLastStateStanding(t *testing.T) {
	out := &screen{width: 80, height: 24}
	tally := newTally()
	now := began
	d := NewLive(Terminal{out, out.size}, tally, Budget{Trials: 2}, func() time.Time { return now })
	add(tally, time.Second, "default", 0.002, 0.002)
	add(tally, 2*time.Second, "other", 0.001, 0.001)
	d.Update(tally)
	d.draw()
	want := "TASK  SHARE  UNTUNED     BEST  SPEED-UP  GFLOP/s  OF LIMIT    TRIALS  ERRORS\n" +
		"conv  100 %  2.00 ms  1.00 ms     2.00x     1.00  50 % bytes       2  -\n" +
		"[==========] trials 2/2  0:00  left 0:00\n" +
		"model 2.00 ms (untuned 4.00 ms, 2.00x; limit 1.00 ms)\n" +
		"time: search 0 %, build 0 %, measure 0 %, wait 100 %"
	if got := out.text(); got != want {
		t.Errorf("drawn is\n%s\nwant\n%s", got, want)
	}
	if n, err := d.Write([]byte("tracker lost\n")); n != 13 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if got := out.text(); got != "tracker lost\n"+want {
		t.Errorf("with a message:\n%s", got)
	}
	d.Close()
	if got := out.text(); !strings.HasPrefix(got, "tracker lost\n[==========] trials 2/2") || strings.Contains(got, "TASK") {
		t.Errorf("in the end\n%s", got)
	}
}

func TestLiveRedrawsAfterANarrowingTerminal(t *testing.T) {
	l := &Live{drawn: []string{strings.Repeat("x", 45), "", "short"}}
	if got, want := l.home(20), "\r\x1b[5A"; got != want {
		t.Errorf("the cursor goes home by %q, want %q", got, want)
	}
	if got, want := l.home(0), "\r\x1b[3A"; got != want {
		t.Errorf("in an unknown width by %q, want %q", got, want)
	}
}
