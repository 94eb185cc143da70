package userkernel

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Names of the files in a kernel's directory.
const (
	DescriptionFile = "kernel.json"
	SourceFile      = "kernel.c"
)

// Limits on a kernel. MaxBytes limits its text, including the source, so that a trace can hold it.
const (
	MaxBytes     = 48 << 10
	maxForms     = 32
	maxKnobs     = 16
	maxValues    = 64
	maxMagnitude = 1 << 31
	maxDims      = 16
)

// Kernel is a user kernel with everything needed to build it.
type Kernel struct {
	// Name identifies it among the kernels of a job.
	Name string `json:"name"`
	// Arch is its processor architecture, Features the required instruction set extensions, sorted. With Card, it
	// is code for the host of an NVIDIA GPU.
	Arch     string   `json:"arch"`
	Features []string `json:"features,omitempty"`
	// Numerics is the lowest level that allows it: strict, default or fast.
	Numerics string `json:"numerics"`
	// Workloads lists the forms that it computes.
	Workloads []Form `json:"workloads"`
	// Knobs lists the open numbers.
	Knobs []Knob `json:"knobs,omitempty"`
	// Legal is the legality condition on knob values; empty means always.
	Legal string `json:"legal,omitempty"`
	// Default is the starting point of a search, one value per knob; if empty, the first legal choice.
	Default map[string]int64 `json:"default,omitempty"`
	// Packs lists the layouts of constants.
	Packs []Pack `json:"pack,omitempty"`
	// Workspace is the scratch memory in bytes, as an expression; empty for none.
	Workspace string `json:"workspace,omitempty"`
	// Libraries lists the libraries that the source calls besides libc and libm, in linker order.
	Libraries []Library `json:"libraries,omitempty"`
	// Source is the C source.
	Source string `json:"source"`

	text   []byte
	legal  expression
	space  expression
	packed [][]packDim
}

// Form is a pattern of workloads: the lines of a canonical text, in which $NAME stands for any number, the same for
// each occurrence. Define adds names with their values.
type Form struct {
	Text   []string         `json:"text"`
	Define map[string]int64 `json:"define,omitempty"`
}

// Knob is an open number with its values in ascending order.
type Knob struct {
	Name   string  `json:"name"`
	Values []int64 `json:"values"`
}

// Pack is the layout of a constant, outermost dimension first: D is a whole dimension, D/F its quotient by F and D%F
// its remainder. Each dimension occurs either whole or as quotient and remainder. Elements beyond the end are zero.
type Pack struct {
	Constant int      `json:"constant"`
	Dims     []string `json:"dims"`
}

var (
	nameOf  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	macroOf = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,31}$`)
)

// Card is the architecture of kernels that enqueue work into a stream of an NVIDIA GPU. They run on the host, and
// call libraries such as cuBLAS. It is also the name of the backend.
const Card = "cuda"

// Threads is the name of the thread count in expressions and in the source.
const Threads = "THREADS"

// Read reads a kernel's directory.
func Read(folder string) (*Kernel, error) {
	description, err := filesystem.ReadRegularIn(folder, DescriptionFile, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", folder, err)
	}
	source, err := filesystem.ReadRegularIn(folder, SourceFile, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", folder, err)
	}
	k, err := parseFolder(description, source)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", folder, err)
	}
	return k, nil
}

// parseFolder parses the two files of a directory.
func parseFolder(description, source []byte) (*Kernel, error) {
	k, err := decode(description)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", DescriptionFile, err)
	}
	if k.Source != "" {
		return nil, fmt.Errorf("%s: source is not given here, but in %s", DescriptionFile, SourceFile)
	}
	k.Source = string(source)
	if err := k.complete(); err != nil {
		return nil, fmt.Errorf("%s: %w", DescriptionFile, err)
	}
	return k, nil
}

// ParseAll parses outputs of Text.
func ParseAll(texts [][]byte) (list []*Kernel, err error) {
	for _, text := range texts {
		k, err := Parse(text)
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}

// Parse parses the output of Text. It rejects other texts of the same kernel, so that a kernel has one digest.
func Parse(text []byte) (*Kernel, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("own kernel: %d bytes are over the limit of %d", len(text), MaxBytes)
	}
	k, err := decode(text)
	if err == nil {
		err = k.complete()
	}
	if err == nil && !bytes.Equal(k.text, text) {
		err = fmt.Errorf("the text is not canonical")
	}
	if err == nil && !k.Pinned() {
		err = fmt.Errorf("kernel %s does not say which versions of its libraries it calls", k.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("own kernel: %w", err)
	}
	return k, nil
}

func decode(text []byte) (*Kernel, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	k := &Kernel{}
	if err := d.Decode(k); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the description")
	}
	return k, nil
}

// Text returns the kernel on one line, including the source.
func (k *Kernel) Text() []byte { return k.text }

// Digest returns the lower-case hex SHA-256 of the text.
func (k *Kernel) Digest() string {
	sum := sha256.Sum256(k.text)
	return hex.EncodeToString(sum[:])
}

// Number returns the kernel's number in points of spaces: stable across its versions, and distinct from those of
// schedules' algorithms.
func (k *Kernel) Number() int64 {
	h := fnv.New32a()
	h.Write([]byte(k.Name))
	return 1<<40 + int64(h.Sum32())
}

// Runs returns an error if the kernel does not suit a target.
func (k *Kernel) Runs(t *target.Target) error {
	if k.Arch == Card {
		if t.Backend != Card {
			return fmt.Errorf("own kernel %s is for NVIDIA cards", k.Name)
		}
		return nil
	}
	if !t.RunsOnCPU() || t.Arch() != k.Arch {
		return fmt.Errorf("own kernel %s is for processors with %s", k.Name, k.Arch)
	}
	if missing := t.Missing(k.Features); len(missing) > 0 {
		return fmt.Errorf("own kernel %s needs %s, which the target lacks", k.Name, strings.Join(missing, ", "))
	}
	return nil
}

// complete checks the kernel and derives the fields that are not in its text.
func (k *Kernel) complete() error {
	slices.Sort(k.Features)
	k.Numerics = cmp.Or(k.Numerics, "strict")
	for _, check := range []func() error{k.checkWords, k.checkLibraries, k.checkKnobs, k.checkForms, k.parseExpressions, k.parsePacks, k.checkCard, k.checkDefault} {
		if err := check(); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(k); err != nil {
		return err
	}
	k.text = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(k.text) > MaxBytes {
		return fmt.Errorf("the kernel has %d bytes, more than the limit of %d", len(k.text), MaxBytes)
	}
	return nil
}

// arches lists the supported architectures.
var arches = []string{target.X86, target.ARM, target.ARM32, target.RISCV, Card}

// checkCard rejects features that only kernels for CPUs may use.
func (k *Kernel) checkCard() error {
	switch {
	case k.Arch != Card:
		return nil
	case len(k.Features) > 0:
		return fmt.Errorf("features: a kernel for arch %s has none", Card)
	case len(k.Packs) > 0:
		return fmt.Errorf("pack: kernels for arch %s read constants as they are", Card)
	}
	return nil
}

func (k *Kernel) checkWords() error {
	switch {
	case !nameOf.MatchString(k.Name):
		return fmt.Errorf("name %q: want up to 64 lower-case letters, digits and dashes", k.Name)
	case !slices.Contains(arches, k.Arch):
		return fmt.Errorf("arch %q: want one of %s", k.Arch, strings.Join(arches, ", "))
	case !slices.Contains([]string{"strict", "default", "fast"}, k.Numerics):
		return fmt.Errorf("numerics %q: want strict, default or fast", k.Numerics)
	case strings.TrimSpace(k.Source) == "":
		return fmt.Errorf("the source is empty")
	case strings.ContainsRune(k.Source, 0):
		return fmt.Errorf("the source holds a zero byte")
	case !utf8.ValidString(k.Source):
		return fmt.Errorf("the source is not UTF-8")
	}
	known := target.FeatureNames(k.Arch)
	for i, f := range k.Features {
		if !slices.Contains(known, f) && k.Arch != Card {
			return fmt.Errorf("features: unknown feature %.40q of %s: want one of %s", f, k.Arch, strings.Join(known, ", "))
		}
		if i > 0 && k.Features[i-1] == f {
			return fmt.Errorf("features: duplicate %s", f)
		}
	}
	return checkSource(k.Source)
}

func (k *Kernel) checkKnobs() error {
	if len(k.Knobs) > maxKnobs {
		return fmt.Errorf("knobs: more than %d", maxKnobs)
	}
	for i, knob := range k.Knobs {
		switch {
		case !macroOf.MatchString(knob.Name) || knob.Name == Threads:
			return fmt.Errorf("knob %q: want a name of capital letters, digits and underscores, other than %s", knob.Name, Threads)
		case slices.ContainsFunc(k.Knobs[:i], func(o Knob) bool { return o.Name == knob.Name }):
			return fmt.Errorf("duplicate knob %s", knob.Name)
		case len(knob.Values) == 0 || len(knob.Values) > maxValues:
			return fmt.Errorf("knob %s: want 1 to %d values", knob.Name, maxValues)
		case !slices.IsSorted(knob.Values) || len(slices.Compact(slices.Clone(knob.Values))) < len(knob.Values):
			return fmt.Errorf("knob %s: want ascending values", knob.Name)
		case knob.Values[0] < -maxMagnitude || knob.Values[len(knob.Values)-1] > maxMagnitude:
			return fmt.Errorf("knob %s: values exceed %d", knob.Name, int64(maxMagnitude))
		}
	}
	return nil
}

func (k *Kernel) checkForms() error {
	if len(k.Workloads) == 0 || len(k.Workloads) > maxForms {
		return fmt.Errorf("workloads: want 1 to %d", maxForms)
	}
	for i, f := range k.Workloads {
		if err := k.checkForm(f); err != nil {
			return fmt.Errorf("workload %d: %w", i, err)
		}
		if i > 0 && !slices.Equal(f.names(), k.Workloads[0].names()) {
			return fmt.Errorf("workload %d uses other names than the first: all must have the same, by $NAME or by define", i)
		}
	}
	return nil
}

func (k *Kernel) checkForm(f Form) error {
	if len(f.Text) == 0 {
		return fmt.Errorf("text is missing")
	}
	bound := f.bound()
	for _, name := range slices.Sorted(maps.Keys(f.Define)) {
		v := f.Define[name]
		if slices.Contains(bound, name) {
			return fmt.Errorf("%s is defined, but the text binds it", name)
		}
		if v < -maxMagnitude || v > maxMagnitude {
			return fmt.Errorf("%.40q exceeds %d", name, int64(maxMagnitude))
		}
	}
	for _, name := range f.names() {
		taken := name == Threads || slices.ContainsFunc(k.Knobs, func(o Knob) bool { return o.Name == name })
		if !macroOf.MatchString(name) || taken {
			return fmt.Errorf("name %q: want capital letters, digits and underscores, and no knob's name nor %s", name, Threads)
		}
	}
	return nil
}

func (k *Kernel) checkDefault() error {
	if k.Default == nil {
		return nil
	}
	if len(k.Default) != len(k.Knobs) {
		return fmt.Errorf("default: want a value for each knob")
	}
	for _, knob := range k.Knobs {
		if v, ok := k.Default[knob.Name]; !ok || !slices.Contains(knob.Values, v) {
			return fmt.Errorf("default: knob %s lacks one of its values", knob.Name)
		}
	}
	return nil
}

func (k *Kernel) parseExpressions() (err error) {
	if k.legal, err = k.parse("legal", k.Legal, "1"); err != nil {
		return err
	}
	k.space, err = k.parse("workspace", k.Workspace, "0")
	return err
}

// parse parses an expression over all names of the kernel.
func (k *Kernel) parse(what, text, empty string) (expression, error) {
	text = cmp.Or(text, empty)
	e, err := parseExpression(text, k.known)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return e, nil
}

func (k *Kernel) known(name string) bool {
	return name == Threads || slices.ContainsFunc(k.Knobs, func(o Knob) bool { return o.Name == name }) ||
		slices.Contains(k.Workloads[0].names(), name)
}
