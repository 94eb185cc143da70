package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

// pinned matches an image with a digest or an exact version. distroless is exempt, because it only has digests and
// one moving tag.
var pinned = regexp.MustCompile(`@sha256:[0-9a-f]{64}$|:v?\d+\.\d+(\.\d+)?(-\w+)?$|^gcr\.io/distroless/static-debian12:nonroot$`)

// instructions returns the instructions of the Dockerfile, with continued lines joined.
func instructions(t *testing.T) (list [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "docker", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			list = append(list, fields)
		}
	}
	return list
}

func TestDockerfileCopiesWhatIsThere(t *testing.T) {
	for _, in := range instructions(t) {
		if in[0] != "COPY" {
			continue
		}
		var sources []string
		stage := false
		for _, word := range in[1:] {
			stage = stage || strings.HasPrefix(word, "--from=")
			if !strings.HasPrefix(word, "--") {
				sources = append(sources, word)
			}
		}
		if stage {
			continue
		}
		for _, source := range sources[:len(sources)-1] {
			if _, err := os.Stat(filepath.Join(root, source)); err != nil {
				t.Errorf("%s: %v", strings.Join(in, " "), err)
			}
		}
	}
}

func TestDockerfileIsPinnedAndRunsAsNobody(t *testing.T) {
	stages, user := map[string]bool{}, ""
	end := func() {
		if user != "" && user != "65532:65532" {
			t.Errorf("a stage runs as %s", user)
		}
	}
	for _, in := range instructions(t) {
		switch in[0] {
		case "FROM":
			end()
			user = "root"
			if len(in) != 4 || in[2] != "AS" || !pinned.MatchString(in[1]) && !stages[in[1]] {
				t.Errorf("%s is not pinned", strings.Join(in, " "))
			}
			stages[in[3]] = true
			if in[3] == "build" {
				user = ""
			}
		case "USER":
			user = in[1]
		}
	}
	end()
	for _, want := range []string{"service", "host"} {
		if !stages[want] {
			t.Errorf("there is no stage %s, which docker-compose.yml and the manifests use", want)
		}
	}
}

// TestDockerfileMakesFoldersOfVolumes checks that services may write to their volumes, which inherit the owners of
// the images' folders.
func TestDockerfileMakesFoldersOfVolumes(t *testing.T) {
	owned := map[string]bool{}
	for _, in := range instructions(t) {
		if in[0] == "COPY" && slices.Contains(in, "--chown=65532:65532") {
			owned[in[len(in)-1]] = true
		}
	}
	for name, s := range project(t).Services {
		for _, v := range s.Volumes {
			if s.Build != nil && s.User == "" && v.Type == types.VolumeTypeVolume && !v.ReadOnly && !owned[v.Target] && !owned[filepath.Dir(v.Target)] {
				t.Errorf("%s cannot write to its volume at %s", name, v.Target)
			}
		}
	}
}
