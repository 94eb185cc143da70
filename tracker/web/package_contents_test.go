package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// openDoor permits everything.
type openDoor struct{ Authenticator }

func (openDoor) May(*http.Request, string, string) bool { return true }

// TestCancelledComparisonStopsWaiting checks that cancelled requests stop waiting to read packages, and
// running ones keep their turn.
func TestCancelledComparisonStopsWaiting(t *testing.T) {
	s := New(Config{Auth: openDoor{}})
	for range maxComparisons {
		s.comparisons <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := s.compareContents(httptest.NewRequest(http.MethodGet, "/compare", nil).WithContext(ctx), make([]packageRow, 2))
	if !slices.Equal(c.Failures, []string{"What is in packages was not read: the request ended."}) || len(s.comparisons) != maxComparisons {
		t.Errorf("it ends with %q, while %d read", c.Failures, len(s.comparisons))
	}
}
