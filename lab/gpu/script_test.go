package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gpuScript is scripts/gpu.sh in a temporary repository with fake Go and GPU tools.
type gpuScript struct {
	*testing.T
	dir string
}

func newGPUScript(t *testing.T) gpuScript {
	t.Helper()
	s := gpuScript{t, t.TempDir()}
	for _, name := range []string{"scripts/gpu.sh", "scripts/version.sh"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		s.write(name, string(text))
	}
	s.write("code.go", "package code\n")
	s.write("docs/performance.md", "none yet\n")
	s.git("init", "-q")
	s.commit()
	return s
}

func (s gpuScript) write(name, text string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		s.Fatal(err)
	}
}

func (s gpuScript) git(args ...string) {
	s.Helper()
	args = append([]string{"-C", s.dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		s.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (s gpuScript) commit() {
	s.Helper()
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "a change")
}

// run runs the script and returns its combined output.
func (s gpuScript) run(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(s.dir, "scripts/gpu.sh"), args...)
	cmd.Env = append(os.Environ(), "PATH=/usr/bin:/bin")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (s gpuScript) version() string {
	s.Helper()
	v, err := s.run("version")
	if err != nil || v == "" {
		s.Fatalf("version: %v: %s", err, v)
	}
	return v
}

// TestResultsAndDocumentsChangeNoVersion covers committed and uncommitted files, so that a run resumes after its
// results were committed. Any change to the measured code is a new version.
func TestResultsAndDocumentsChangeNoVersion(t *testing.T) {
	s := newGPUScript(t)
	first := s.version()
	for k := range 2 {
		s.write("lab/bench/results/card/results.jsonl", strings.Repeat("{}\n", k+1))
		s.write("docs/performance.md", strings.Repeat("a table\n", k+1))
		s.write("README.md", strings.Repeat("read\n", k+1))
		if v := s.version(); v != first {
			t.Errorf("results make %s of %s", v, first)
		}
		s.commit()
		if v := s.version(); v != first {
			t.Errorf("results that were committed make %s of %s", v, first)
		}
	}
	s.write("lab/bench/results.go", "package bench\n")
	s.commit()
	keeps := s.version()
	if keeps == first {
		t.Error("a program that keeps results counts as one of them")
	}
	first = keeps
	s.write("code.go", "package changed\n")
	second := s.version()
	s.write("code.go", "package again\n")
	third := s.version()
	s.commit()
	fourth := s.version()
	if second == first || third == second || fourth == third || strings.Contains(fourth, "+") || !strings.HasPrefix(second, first+"+") {
		t.Errorf("the versions are %s, %s, %s and %s", first, second, third, fourth)
	}
}

// TestWithoutGoAndABundleThereIsARemedy checks for a one-line message.
func TestWithoutGoAndABundleThereIsARemedy(t *testing.T) {
	if _, err := os.Stat("/usr/bin/go"); err == nil {
		t.Skip("this system has a Go of its own")
	}
	out, err := newGPUScript(t).run()
	if err == nil || !strings.Contains(out, "scripts/gpu.sh pack") || strings.Count(out, "\n") > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
