package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// evil names things in files: it clears the screen, sets the title, colours, reverses and rings, in 7 and 8 bits.
const evil = "evil\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\x7f\r\x08"

// hostileFile writes a file of a test's folder.
func hostileFile(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hostileModel names everything in a model with evil.
func hostileModel(op string) *onnx.Model {
	m := modeltest.New().Input("x", 8, 8).Constant("w", 8, 8).Node("y = MatMul x w").Node("z = Relu y").Output("z")
	m.ProducerName, m.Graph.Name = evil, evil
	for _, n := range m.Graph.Nodes {
		n.Name += evil
		for _, names := range [][]string{n.Inputs, n.Outputs} {
			for k := range names {
				names[k] += evil
			}
		}
	}
	m.Graph.Inputs[0].Name += evil
	m.Graph.Outputs[0].Name += evil
	m.Graph.Initializers[0].Name += evil
	m.Graph.Nodes[1].Op = op
	return m
}

// spoilt appends evil to the strings of JSON under the given names.
func spoilt(v any, names map[string]bool) any {
	switch v := v.(type) {
	case []any:
		for k := range v {
			v[k] = spoilt(v[k], names)
		}
	case map[string]any:
		for name, inner := range v {
			if text, is := inner.(string); is && names[name] {
				v[name] = text + evil
			} else if name != "members" { // a package without them does not load
				v[name] = spoilt(inner, names)
			}
		}
	}
	return v
}

func spoiltJSON(t *testing.T, text []byte, names ...string) []byte {
	t.Helper()
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(spoilt(v, set))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// earlier returns a reader of a file in testdata/earlier.
func earlier(t *testing.T, name string) io.Reader {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", "earlier", name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hostilePackage spoils the manifest of a package, and adds a member with an evil name, as often as asked.
func hostilePackage(t *testing.T, members int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, data []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644, Format: tar.FormatGNU}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	r := tar.NewReader(earlier(t, "package.tar.gz"))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "manifest.json" {
			data = spoiltJSON(t, data, "name", "model", "origin", "tilth", "commit", "numerics", "device_class", "measured_at", "candidate", "trace")
		}
		add(h.Name, data)
	}
	for range members {
		add(strings.ReplaceAll(evil, "\x00", ""), nil)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func hostileRecords(t *testing.T) []byte {
	t.Helper()
	text, err := io.ReadAll(earlier(t, "export.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		out.Write(spoiltJSON(t, line, "device", "message", "jobId", "builder", "remeasured"))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func hostileArchive(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	if _, err := w.Create(evil + ".npy"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestNamesInFilesDoNotControlTheTerminal runs commands on files full of escape sequences. Each prints some of their
// names, as results or in errors.
func TestNamesInFilesDoNotControlTheTerminal(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	model := hostileFile(t, dir, evil+".onnx", hostileModel("Relu").Encode())
	unknown := hostileFile(t, dir, "unknown.onnx", hostileModel(evil).Encode())
	pack := hostileFile(t, dir, evil+".tar", hostilePackage(t, 1))
	twice := hostileFile(t, dir, "twice.tar", hostilePackage(t, 2))
	lines := hostileFile(t, dir, "records.jsonl", hostileRecords(t))
	archive := hostileFile(t, dir, "inputs.npz", hostileArchive(t))
	store := filepath.Join(dir, evil+".db")
	missing := filepath.Join(dir, evil)
	if status := run([]string{"records", "import", lines, "--records", store}, nil, io.Discard, io.Discard); status != 0 {
		t.Fatal("the records are not imported")
	}
	commands := [][]string{
		{"tasks", model, "--dump", "graph"}, {"tasks", unknown}, {"tasks", missing},
		{"compile", unknown, "-o", filepath.Join(dir, "out.tar")}, {"compile", model, "--set", "q=1", "-o", filepath.Join(dir, "out.tar")},
		{"package", "show", pack}, {"package", "show", pack, "--json"}, {"package", "show", twice}, {"package", "show", missing},
		{"run", pack, "--inputs", archive}, {"run", twice}, {"bench", twice}, {"compare", twice, twice},
		{"records", "list", "--records", store}, {"records", "list", "--records", store, "--json"},
		{"records", "import", missing, "--records", store}, {"records", "verify", missing}, {"sign", missing, "--key", missing},
		{"tune", unknown}, {evil}, {"tasks", "--" + evil}, {"jobs", "list", "--tracker", evil},
	}
	for _, args := range commands {
		var out, failure bytes.Buffer
		run(args, strings.NewReader(""), &out, &failure)
		said := out.String() + failure.String()
		if i := strings.IndexFunc(said, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q: %q", args, said[max(0, i-60):min(len(said), i+60)])
		}
		if !strings.Contains(said, "evil") {
			t.Errorf("%q prints no name of a file: %q", args, said)
		}
		if len(failure.String()) > 800 {
			t.Errorf("%q: %d characters: %q", args, failure.Len(), failure.String())
		}
	}
}
