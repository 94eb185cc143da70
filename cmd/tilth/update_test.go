package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"aead.dev/minisign"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// builtVersion occurs nowhere else in the program, so another build only differs in these bytes.
const builtVersion = "v71.0.0"

// updateFarm is a tracker that offers releases, and a runner that installs them.
type updateFarm struct {
	*farmUnderTest
	key      minisign.PrivateKey
	releases string
	board    string // path of the runner's program
	program  []byte
}

func startUpdateFarm(t *testing.T) *updateFarm {
	f := &updateFarm{farmUnderTest: newFarmUnderTest(t)}
	f.releases, f.board = filepath.Join(f.dir, "releases"), filepath.Join(f.dir, "board", "tilth")
	for _, dir := range []string{f.releases, filepath.Dir(f.board)} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X main.version="+builtVersion, "-o", f.board, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var err error
	if f.program, err = os.ReadFile(f.board); err != nil {
		t.Fatal(err)
	}
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.key = private
	if err := os.WriteFile(filepath.Join(f.dir, "tilth.pub"), []byte(public.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// build returns the program with another version.
func (f *updateFarm) build(version string) []byte {
	return bytes.ReplaceAll(f.program, []byte(builtVersion), []byte(version))
}

// offer adds a release to the tracker's folder. It signs the archive with a key, and then applies change to it.
func (f *updateFarm) offer(key minisign.PrivateKey, version string, program []byte, change func([]byte) []byte) {
	f.t.Helper()
	name := "tilth-" + version + "-linux-" + runtime.GOARCH
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed) // the level is valid
	files := tar.NewWriter(zip)
	if err := files.WriteHeader(&tar.Header{Name: name + "/tilth", Mode: 0o755, Size: int64(len(program)), Typeflag: tar.TypeReg}); err != nil {
		f.t.Fatal(err)
	}
	_, _ = files.Write(program) // in memory
	_ = files.Close()
	_ = zip.Close()
	sums := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(packed.Bytes()), name)
	hashed := minisign.NewReader(strings.NewReader(sums))
	_, _ = io.Copy(io.Discard, hashed) // in memory
	signature := hashed.SignWithComments(key, "tilth "+version+" SHA256SUMS", "")
	for file, data := range map[string][]byte{name + ".tar.gz": change(packed.Bytes()), "SHA256SUMS": []byte(sums), "SHA256SUMS.minisig": signature} {
		if err := os.WriteFile(filepath.Join(f.releases, file), data, 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
}

func same(data []byte) []byte { return data }

// startBoard starts the runner's own copy of the program, which replaces itself.
func (f *updateFarm) startBoard() {
	log, err := os.Create(filepath.Join(f.dir, "runner.log"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	args := append(f.args("runner"), "--update-key", filepath.Join(f.dir, "tilth.pub"), "--update-every", "300ms", "--calibrate=false", "--sandbox", "off")
	c := exec.Command(f.board, args...)
	c.Env, c.Stderr = f.env(), log
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.running["runner"] = c
}

// says waits for text in the runner's log.
func (f *updateFarm) says(ctx context.Context, words string) {
	f.t.Helper()
	f.until(ctx, "the runner does not say: "+words, func() bool {
		log, err := os.ReadFile(filepath.Join(f.dir, "runner.log"))
		return err == nil && strings.Contains(string(log), words)
	})
}

// runs waits for a runner of a version and checks its label.
func (f *updateFarm) runs(ctx context.Context, version, label string) {
	f.t.Helper()
	f.until(ctx, fmt.Sprintf("no runner of version %s with a label like %q has joined", version, label), func() bool {
		agents, err := f.client.Agents(ctx, tilthv1.AgentKind_AGENT_KIND_RUNNER)
		return err == nil && len(agents) == 1 && agents[0].GetSpec().GetVersion() == version && agents[0].GetState() != tilthv1.AgentState_AGENT_STATE_GONE &&
			strings.Contains(agents[0].GetSpec().GetLabels()[updateLabel], label)
	})
}

// TestRunnerTakesNewerReleasesOfItsKeyAlone checks that the old program continues until a new one has joined the
// farm, whatever the tracker offers and however a new program fails.
func TestRunnerTakesNewerReleasesOfItsKeyAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds the program, and has a runner replace itself by six releases")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startUpdateFarm(t)
	_, other, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.offer(other, "v72.0.0", f.build("v72.0.0"), same)
	f.more = map[string][]string{"tracker": {"--releases", f.releases}}
	f.launch("tracker")
	f.awaitTracker(ctx)
	f.startBoard()
	f.says(ctx, "signed with another key")

	f.offer(f.key, "v70.0.0", f.build("v70.0.0"), same)
	f.says(ctx, "release v70.0.0 is older than this program, v71.0.0")

	f.offer(f.key, "v72.0.0", f.build("v72.0.0"), func(packed []byte) []byte {
		packed[len(packed)/2] ^= 1
		return packed
	})
	f.says(ctx, "tilth-v72.0.0-linux-"+runtime.GOARCH+".tar.gz was changed")

	f.offer(f.key, "v73.0.0", f.build("v74.0.0"), same)
	f.runs(ctx, builtVersion, "v73.0.0 failed: it reports version")

	const broken = "#!/bin/sh\n[ \"$1\" = --version ] && echo tilth version v75.0.0 && exit\nprintf 'no such \\377farm' >&2\nexit 1\n"
	f.offer(f.key, "v75.0.0", []byte(broken), same)
	f.runs(ctx, builtVersion, "v75.0.0 failed: it did not join the farm: exit status 1: no such \uFFFDfarm")

	f.offer(f.key, "v76.0.0", f.build("v76.0.0"), same)
	f.says(ctx, "the new release joined the farm: continuing as the new program") // so that the next join is no trial
	f.runs(ctx, "v76.0.0", "")
	for path, want := range map[string]string{f.board: "v76.0.0", f.board + ".old": builtVersion} {
		if out, err := exec.CommandContext(ctx, path, "--version").Output(); err != nil || !strings.HasPrefix(string(out), "tilth version "+want+" ") {
			t.Errorf("%s is %q: %v", path, out, err)
		}
	}
	left, err := filepath.Glob(f.board + ".*")
	if err != nil || !slices.Equal(left, []string{f.board + ".lock", f.board + ".old"}) {
		t.Errorf("beside the program are %v: %v", left, err)
	}
}

func TestUpdateLabelsFitTheirBounds(t *testing.T) {
	long := withLabel(nil, updateLabel, strings.Repeat("x", maxLabel-1)+"é")[updateLabel]
	if !utf8.ValidString(long) || len(long) != maxLabel-1 {
		t.Errorf("%q", long)
	}
	full := map[string]string{}
	for k := range maxLabels {
		full[fmt.Sprint(k)] = "x"
	}
	if got := withLabel(full, updateLabel, "failed"); len(got) != maxLabels {
		t.Errorf("a device has %d labels", len(got))
	}
	delete(full, "0")
	full[updateLabel] = "mine"
	if got := withLabel(full, updateLabel, "failed"); len(got) != maxLabels || got[updateLabel] != "failed" {
		t.Errorf("labels are %v", got)
	}
}
