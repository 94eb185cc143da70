package frontend

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/modelzoo"
)

func TestDumpShowsTheGraphAfterEachStageThatChangedIt(t *testing.T) {
	m, err := modelzoo.Build("dcgan", modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stages, err := Dump(m, Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]string{}
	for _, s := range stages {
		byName[s.Name] = s.Text
	}
	first, last := stages[0], stages[len(stages)-1]
	if first.Name != stageBuild || !strings.HasPrefix(first.Text, "input data f32[1,100,1,1]\n") || !strings.Contains(first.Text, "= BatchNormalization(") {
		t.Errorf("first is %s:\n%s", first.Name, first.Text)
	}
	if text := byName["fold-batch-norms"]; text == "" || strings.Contains(text, "= BatchNormalization(") {
		t.Errorf("after fold-batch-norms:\n%s", text)
	}
	if last.Name != stagePartition || !strings.Contains(last.Text, ", kernel 0\n") {
		t.Errorf("last is %s:\n%s", last.Name, last.Text)
	}
	if _, shown := byName["fuse-attention"]; shown {
		t.Error("a pass that changed nothing is shown")
	}
}

func TestPassesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{stageBuild: true, stagePartition: true}
	for _, p := range passes {
		if seen[p.Name] {
			t.Errorf("two stages are called %s", p.Name)
		}
		seen[p.Name] = true
	}
}
