package main

import (
	"testing"
	"time"

	"github.com/tilth-dev/tilth/tracker/policy"
)

func TestJobsAreKeptByNumberAndTime(t *testing.T) {
	for _, c := range []struct {
		flag []string
		want policy.Retention
		bad  string
	}{
		{keepDefault, policy.Retention{Jobs: 1000, Age: 90 * 24 * time.Hour}, ""},
		{[]string{"5"}, policy.Retention{Jobs: 5, Age: -1}, ""},
		{[]string{"720h"}, policy.Retention{Jobs: -1, Age: 720 * time.Hour}, ""},
		{nil, policy.Retention{Jobs: -1, Age: -1}, ""},
		{[]string{"0"}, policy.Retention{}, "0"},
		{[]string{"-1h"}, policy.Retention{}, "-1h"},
		{[]string{"5", "6"}, policy.Retention{}, "6"},
		{[]string{"many"}, policy.Retention{}, "many"},
	} {
		f := keepFlags{jobs: c.flag}
		got, err := f.keep()
		if c.bad != "" {
			if want := "--keep-jobs " + c.bad + ": want a number of at least 1, a time such as 720h, or one of each"; err == nil || err.Error() != want {
				t.Errorf("%v: %v, want %s", c.flag, err, want)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%v: %v, %v, want %v", c.flag, got, err, c.want)
		}
	}
}
