package wire

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestReasonsComeFromStatusDetails(t *testing.T) {
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
