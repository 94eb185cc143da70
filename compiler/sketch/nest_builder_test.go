package sketch

import (
	"errors"
	"testing"
)

func TestBuilderStopsAtTheFirstError(t *testing.T) {
	first := errors.New("first")
	apply := func() (err error) {
		defer Catch(&err)
		b := &Builder{}
		b.Do(nil)
		if got := Get(3, nil); got != 3 {
			t.Errorf("got %d, want 3", got)
		}
		Get(3, first)
		b.Do(errors.New("second"))
		return nil
	}
	if err := apply(); !errors.Is(err, first) {
		t.Errorf("got %v, want the first error", err)
	}
}

func TestCatchPassesOtherPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a bug became an error")
		}
	}()
	var err error
	defer Catch(&err)
	panic("a bug")
}
