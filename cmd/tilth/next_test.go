package main

import (
	"io"
	"slices"
	"testing"
)

func TestTheNextCommandHasTheFlagsThatFindWhatWasTuned(t *testing.T) {
	c := newTune(&app{stdout: io.Discard, stderr: io.Discard})
	err := c.ParseFlags([]string{"--trials", "9", "--shape", "data=1x3", "--threads", "2", "--records", "my records.db", "--numerics", "fast"})
	if err != nil {
		t.Fatal(err)
	}
	got := nextCommands([]string{"models/a.onnx", stdio, "it's.onnx"}, c.Flags())
	const flags = " --numerics=fast '--records=my records.db' --shape=data=1x3 --threads=2"
	want := []string{"tilth compile models/a.onnx -o a.tar" + flags, `tilth compile 'it'\''s.onnx' -o 'it'\''s.tar'` + flags}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

func TestCompileTakesEveryFlagThatTuneHandsOn(t *testing.T) {
	a := &app{stdout: io.Discard, stderr: io.Discard}
	for _, name := range compileFlags {
		if newTune(a).Flags().Lookup(name) == nil || newCompile(a).Flags().Lookup(name) == nil {
			t.Errorf("--%s is not a flag of both", name)
		}
	}
}
