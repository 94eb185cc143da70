package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tilth-dev/tilth/compiler/conformance"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// outputs maps commands to the types of their JSON output and logs.
var outputs = map[string]reflect.Type{
	"board monitor":       reflect.TypeFor[monitorResult](),
	"check":               reflect.TypeFor[conformance.Result](),
	"compare":             reflect.TypeFor[[]compareRow](),
	"compile":             reflect.TypeFor[compileResult](),
	"devices cordon":      reflect.TypeFor[deviceRow](),
	"devices drain":       reflect.TypeFor[deviceRow](),
	"devices list":        reflect.TypeFor[[]deviceRow](),
	"devices recalibrate": reflect.TypeFor[deviceRow](),
	"devices show":        reflect.TypeFor[deviceRow](),
	"devices uncordon":    reflect.TypeFor[deviceRow](),
	"doctor":              reflect.TypeFor[[]farm.Finding](),
	"guard":               reflect.TypeFor[guardResult](),
	"jobs cancel":         reflect.TypeFor[jobRow](),
	"jobs delete":         reflect.TypeFor[deleteView](),
	"jobs list":           reflect.TypeFor[[]jobRow](),
	"jobs owners":         reflect.TypeFor[[]ownerRow](),
	"jobs pause":          reflect.TypeFor[jobRow](),
	"jobs resume":         reflect.TypeFor[jobRow](),
	"jobs retry":          reflect.TypeFor[retryView](),
	"jobs show":           reflect.TypeFor[jobView](),
	"jobs submit":         reflect.TypeFor[jobRow](),
	"jobs watch":          reflect.TypeFor[progress.Summary](),
	"model":               reflect.TypeFor[[]modelzoo.Description](),
	"model NAME":          reflect.TypeFor[modelResult](),
	"package show":        reflect.TypeFor[packageView](),
	"records best":        reflect.TypeFor[[]bestRow](),
	"records doctor":      reflect.TypeFor[recordsDiagnosis](),
	"records list":        reflect.TypeFor[[]recordRow](),
	"records sync":        reflect.TypeFor[syncResult](),
	"run":                 reflect.TypeFor[runResult](),
	"sign":                reflect.TypeFor[[]signedRow](),
	"targets":             reflect.TypeFor[[]target.Named](),
	"tasks":               reflect.TypeFor[[]taskRow](),
	"tracker token list":  reflect.TypeFor[[]tokenRow](),
	"tune":                reflect.TypeFor[progress.Summary](),
	"tune --log":          reflect.TypeFor[progress.Line](),
	"verify":              reflect.TypeFor[[]signedRow](),
	"version":             reflect.TypeFor[buildRow](),
}

var (
	updateSchemas = flag.Bool("update-schemas", false, "write docs/schema, unless what was promised breaks")
	breakSchemas  = flag.Bool("break-schemas", false, "with -update-schemas: also if it breaks")
)

// TestJSONIsAsPromised compares docs/schema with the output types. Scripts depend on them: existing fields keep their
// names and types.
func TestJSONIsAsPromised(t *testing.T) {
	for _, command := range slices.Sorted(maps.Keys(outputs)) {
		t.Run(command, func(t *testing.T) {
			now := schemaOf(t, command)
			path := schemaFile(command)
			written, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			broken := breaks(t, written, now)
			if len(broken) > 0 && !*breakSchemas {
				t.Fatalf("scripts that read the output of 'tilth %s --json' break: %s", command, strings.Join(broken, "; "))
			}
			if *updateSchemas {
				if err := os.WriteFile(path, now, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(written, now) {
				t.Errorf("%s is not what the program prints: go test ./cmd/tilth -run TestJSONIsAsPromised -update-schemas", path)
			}
		})
	}
}

// TestEveryJSONIsPromised requires a schema for every command with --json.
func TestEveryJSONIsPromised(t *testing.T) {
	for _, c := range commands(newRoot(&app{stdout: io.Discard, stderr: io.Discard})) {
		command := strings.TrimPrefix(c.CommandPath(), "tilth ")
		if has, promised := c.Flags().Lookup("json") != nil, outputs[command] != nil; has != promised {
			t.Errorf("%s: has --json: %t, has a schema: %t", command, has, promised)
		}
	}
	files, err := filepath.Glob(schemaFile("*"))
	if err != nil || len(files) != len(outputs) {
		t.Errorf("%d schemas of %d outputs, %v", len(files), len(outputs), err)
	}
}

// otherUnits matches suffixes of nonstandard units of times, sizes and rates.
var otherUnits = regexp.MustCompile(`(^|_)(ms|us|ns|sec|secs|seconds|second|minutes|hours|kb|mb|gb|kib|mib|gib)$|_per_sec`)

// TestUnitsInJSONAreOfOneKind requires seconds (_s), bytes (_bytes) and rates (_per_s).
func TestUnitsInJSONAreOfOneKind(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for command := range outputs {
		var s *jsonschema.Schema
		if err := json.Unmarshal(schemaOf(t, command), &s); err != nil {
			t.Fatal(err)
		}
		visit(s, "", func(path, name string, _ *jsonschema.Schema, _ bool) {
			if !snake.MatchString(name) || otherUnits.MatchString(name) {
				t.Errorf("%s: %s is not in snake case, or has its unit in another way than _s, _bytes and _per_s", command, path)
			}
		})
	}
}

func schemaFile(command string) string {
	return filepath.Join("..", "..", "docs", "schema", strings.NewReplacer(" --", "-", " ", "-").Replace(command)+".json")
}

// targetForm is the JSON form of a target; see its MarshalJSON.
type targetForm struct {
	Backend string `json:"backend,omitempty"`
	target.CPU
	GPU       *target.GPU `json:"gpu,omitempty"`
	Toolchain string      `json:"toolchain,omitempty"`
}

// schemaOf returns the schema of a command's output, as JSON.
func schemaOf(t *testing.T, command string) []byte {
	t.Helper()
	described, err := jsonschema.For[targetForm](nil)
	if err != nil {
		t.Fatal(err)
	}
	described.AdditionalProperties = nil
	s, err := jsonschema.ForType(outputs[command], &jsonschema.ForOptions{
		TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[target.Target](): described},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "tilth " + command + map[bool]string{true: " --json"}[!strings.Contains(command, "--")]
	newDescriber(t).describe(s, outputs[command])
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

// breaks lists the incompatibilities of a later schema for readers of an earlier one.
func breaks(t *testing.T, before, now []byte) (broken []string) {
	t.Helper()
	if len(before) == 0 {
		return nil
	}
	var old, later *jsonschema.Schema
	if err := errors.Join(json.Unmarshal(before, &old), json.Unmarshal(now, &later)); err != nil {
		t.Fatal(err)
	}
	types, required := map[string]string{}, map[string]bool{}
	visit(later, "", func(path, _ string, s *jsonschema.Schema, must bool) { types[path], required[path] = kindOf(s), must })
	visit(old, "", func(path, _ string, s *jsonschema.Schema, must bool) {
		kind, there := types[path]
		switch {
		case !there:
			broken = append(broken, path+" is gone")
		case kind != kindOf(s):
			broken = append(broken, fmt.Sprintf("%s was %s and is %s", path, kindOf(s), kind))
		case must && !required[path]:
			broken = append(broken, path+" may be left out")
		}
	})
	return broken
}

func TestIncompatibleSchemasAreDetected(t *testing.T) {
	type nested struct {
		Kept int `json:"kept"`
	}
	before := func(v any) []byte {
		s, err := jsonschema.ForType(reflect.TypeOf(v), nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	old := before([]struct {
		Gone    string   `json:"gone"`
		Retyped int      `json:"retyped"`
		Left    bool     `json:"left"`
		Nested  []nested `json:"nested"`
	}{})
	later := before([]struct {
		Retyped string `json:"retyped"`
		Left    bool   `json:"left,omitempty"`
		Nested  []struct {
			Added int `json:"added"`
		} `json:"nested"`
	}{})
	want := []string{
		"[].gone is gone", "[].left may be left out", "[].nested[].kept is gone", "[].retyped was integer and is string",
	}
	if got := slices.Sorted(slices.Values(breaks(t, old, later))); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := breaks(t, old, old); got != nil {
		t.Errorf("the same: %q", got)
	}
}

func kindOf(s *jsonschema.Schema) string {
	return strings.Join(append(slices.Clone(s.Types), s.Type), " ")
}

// visit calls a function with each property below a schema and its path.
func visit(s *jsonschema.Schema, at string, each func(path, name string, s *jsonschema.Schema, required bool)) {
	if s == nil {
		return
	}
	visit(s.Items, at+"[]", each)
	visit(s.AdditionalProperties, at+"{}", each)
	for name, p := range s.Properties {
		path := strings.TrimPrefix(at+"."+name, ".")
		each(path, name, p, slices.Contains(s.Required, name))
		visit(p, path, each)
	}
}

// describer adds comments of fields to schemas.
type describer struct {
	t *testing.T
	// comments holds the comments of fields by package and then by TYPE.FIELD.
	comments map[string]map[string]string
}

func newDescriber(t *testing.T) *describer { return &describer{t, parsedComments} }

// parsedComments caches the comments of packages. Tests that describe schemas do not run in parallel.
var parsedComments = map[string]map[string]string{}

func (d *describer) describe(s *jsonschema.Schema, of reflect.Type) {
	switch of.Kind() {
	case reflect.Pointer:
		d.describe(s, of.Elem())
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			d.describe(s.Items, of.Elem())
		}
	case reflect.Map:
		if s.AdditionalProperties != nil {
			d.describe(s.AdditionalProperties, of.Elem())
		}
	case reflect.Struct:
		if s.Properties != nil {
			s.AdditionalProperties = nil // a later version may add fields
			d.fields(s, of)
		}
	}
}

func (d *describer) fields(s *jsonschema.Schema, of reflect.Type) {
	comments := d.commentsOf(of.PkgPath())
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			d.fields(s, f.Type)
			continue
		}
		p := s.Properties[name]
		if p == nil {
			continue
		}
		d.describe(p, f.Type)
		p.Description = named(comments[of.Name()+"."+f.Name], of)
	}
}

// named replaces Go names of fields in a comment by their JSON names.
func named(comment string, of reflect.Type) string {
	for i := range of.NumField() {
		f := of.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			comment = regexp.MustCompile(`\b`+f.Name+`\b`).ReplaceAllString(comment, name)
		}
	}
	return comment
}

func (d *describer) commentsOf(pkg string) map[string]string {
	if known := d.comments[pkg]; known != nil {
		return known
	}
	found := map[string]string{}
	d.comments[pkg] = found
	dir := "."
	if below, ours := strings.CutPrefix(pkg, "github.com/tilth-dev/tilth/"); ours {
		dir = filepath.Join("..", "..", filepath.FromSlash(below))
	} else if pkg != "main" && pkg != "github.com/tilth-dev/tilth" {
		return found
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			d.t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			if s, is := spec.Type.(*ast.StructType); is {
				fieldComments(found, spec.Name.Name, s)
			}
			return true
		})
	}
	return found
}

func fieldComments(found map[string]string, name string, s *ast.StructType) {
	for _, f := range s.Fields.List {
		comment := f.Doc.Text() + f.Comment.Text()
		for _, n := range f.Names {
			found[name+"."+n.Name] = strings.Join(strings.Fields(comment), " ")
		}
	}
}

// promised checks the last output against a command's schema: promised COMMAND...
func promised(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: promised COMMAND...")
	}
	data, err := os.ReadFile(schemaFile(strings.Join(args, " ")))
	ts.Check(err)
	var s *jsonschema.Schema
	ts.Check(json.Unmarshal(data, &s))
	resolved, err := s.Resolve(nil)
	ts.Check(err)
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	for n := 0; ; n++ {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) && n > 0 {
			return
		} else if err != nil {
			ts.Fatalf("no JSON: %v", err)
		}
		if err := resolved.Validate(v); err != nil {
			ts.Fatalf("not as promised: %v", err)
		}
	}
}
