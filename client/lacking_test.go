package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitOnlyForTransientConditions also checks that nothing else is waited for.
func TestWaitOnlyForTransientConditions(t *testing.T) {
	lacks, broken := lacking("no device"), errors.New("broken")
	for name, c := range map[string]struct {
		patience Patience
		answers  []error
		tries    int
		want     string
	}{
		"it is there":          {Patience{}, []error{nil}, 1, ""},
		"nobody waits":         {Patience{}, []error{lacks}, 1, "no device"},
		"it comes":             {Patience{Waits: true}, []error{lacks, lacks, nil}, 3, ""},
		"it does not come":     {Patience{Waits: true, Most: 5 * time.Second}, []error{lacks, lacks, lacks, lacks}, 3, "waited 5s: "},
		"something else fails": {Patience{Waits: true}, []error{lacks, broken}, 2, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries, said := 0, 0
				c.patience.Report = func(string) { said++ }
				err := c.patience.Try(t.Context(), func(context.Context) error {
					tries++
					return c.answers[tries-1]
				})
				if tries != c.tries || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%d tries came to %v; want %d and %q", tries, err, c.tries, c.want)
				}
				if said > 1 {
					t.Errorf("the same was told %d times", said)
				}
			})
		})
	}
}
