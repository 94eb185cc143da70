package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestReasonsAreReadWithoutMessages(t *testing.T) {
	refused := Refuse(codes.NotFound, ReasonVoidSession, "session %q is void", "s")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"none":           {nil, ""},
		"no status":      {errors.New(ReasonVoidSession), ""},
		"no detail":      {status.Error(codes.NotFound, ReasonVoidSession), ""},
		"refusal":        {refused, ReasonVoidSession},
		"refusal inside": {fmt.Errorf("heartbeat: %w", refused), ReasonVoidSession},
	} {
		if got := Reason(c.err); got != c.want {
			t.Errorf("%s: reason %q, want %q", name, got, c.want)
		}
	}
	if s := status.Convert(refused); s.Code() != codes.NotFound || s.Message() != `session "s" is void` {
		t.Errorf("the refusal says %v", s)
	}
}

// TestALineHasNothingThatMovesACursor, and is text that a message may have.
func TestALineHasNothingThatMovesACursor(t *testing.T) {
	for message, want := range map[string]string{
		"":                            "",
		"undefined symbol: größe":     "undefined symbol: größe",
		"first\nsecond":               "first",
		"\x1b[2Jgone\a\ttab\r":        "[2Jgone  tab",
		"bad \xff byte":               "bad \ufffd byte",
		strings.Repeat("x", 1<<20):    strings.Repeat("x", maxLineBytes),
		"right to left \u202e hidden": "right to left   hidden",
	} {
		if got := Line(message); got != want {
			t.Errorf("%q became %q, want %q", message, got, want)
		}
	}
}
