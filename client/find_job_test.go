package client

import (
	"strings"
	"testing"
)

func TestAListingBeginsAfterAllThatBeginSo(t *testing.T) {
	for digits, want := range map[string]string{
		"0": "job-10000000", "00000012": "job-00000013", "0000001": "job-00000020", "00000099": "job-00000100", "123456789": "job-123456790",
	} {
		if got := after(digits); got != want {
			t.Errorf("after %s comes %s, want %s", digits, got, want)
		}
	}
}

func TestTheBeginningOfAnIDMeansOneJob(t *testing.T) {
	const ana, eva = "job-00000001-ana", "job-00000001-eva"
	many := strings.Split(strings.Repeat(ana+" ", mostCandidates+1), " ")[:mostCandidates+1]
	for _, c := range []struct {
		name, text string
		found      []string
		want, fail string
	}{
		{"unknown", "job-9", nil, "job-9", ""},
		{"one", "job-00000001-a", []string{ana}, ana, ""},
		{"whole", "job-00000001", []string{eva, "job-00000001"}, "job-00000001", ""},
		{"two", "job-00000001", []string{eva, ana}, "", "job job-00000001: several ids begin so: give more of one of " + eva + ", " + ana},
		{"many", "job-0", many, "", ", ..."},
	} {
		got, err := only(c.text, c.found)
		if got != c.want || (err == nil) != (c.fail == "") || err != nil && !strings.HasSuffix(err.Error(), c.fail) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}
