package jobclient

import (
	"cmp"
	"fmt"
	"os"

	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/importedseeds"
)

// ModelFiles maps digests of artifacts to absolute paths.
type ModelFiles map[string]string

func (f ModelFiles) open(ref *tilthv1.ArtifactRef) (*os.File, error) {
	path := f[ref.GetDigest()]
	if path == "" {
		return nil, fmt.Errorf("artifact %s was not fetched", ref.GetDigest())
	}
	return os.Open(path)
}

// modelFile is the part of a job that describes one of its models.
type modelFile interface {
	GetFile() *tilthv1.ArtifactRef
	GetShapes() map[string]*tilthv1.Extents
	GetOpen() map[string]*tilthv1.ExtentBounds
	GetDerived() map[string]string
	GetFrom() []string
	GetTo() []string
	GetWeight() float64
}

// readModels reads a job's models one after another, so that the weights of all need not fit in memory.
func readModels(o *Objective, files ModelFiles, spec *tilthv1.JobSpec) error {
	if err := readModel(o, files, spec.GetName(), spec.GetModel()); err != nil {
		return err
	}
	for i, other := range spec.GetModel().GetOthers() {
		if err := readModel(o, files, cmp.Or(other.GetName(), fmt.Sprintf("others[%d]", i)), other); err != nil {
			return err
		}
	}
	return nil
}

func readModel(o *Objective, files ModelFiles, name string, m modelFile) error {
	s, err := sourceOf(files, name, m)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return o.Import(s)
}

// sourceOf reads a model's file. It ignores references to external files.
func sourceOf(files ModelFiles, name string, m modelFile) (Source, error) {
	s := Source{Name: name, Shapes: map[string][]int64{}, Open: map[string]frontend.Bounds{}, Derived: m.GetDerived(), Weight: m.GetWeight()}
	for name, extents := range m.GetShapes() {
		s.Shapes[name] = extents.GetExtents()
	}
	for name, b := range m.GetOpen() {
		s.Open[name] = frontend.Bounds{Min: b.GetLeast(), Max: b.GetMost(), Step: b.GetStep(), Caps: b.GetCaps(), Frequencies: b.GetFrequencies()}
	}
	f, err := files.open(m.GetFile())
	if err != nil {
		return s, err
	}
	defer f.Close()
	if s.Model, err = onnx.ReadFrom(f, "the artifact"); err != nil {
		return s, err
	}
	if len(m.GetFrom()) > 0 || len(m.GetTo()) > 0 {
		s.Model, err = s.Model.Part(m.GetFrom(), m.GetTo())
	}
	return s, err
}

// Program returns the program of a job's first model for a target, read in this process, and the job's numerics and
// kernels.
func Program(files ModelFiles, spec *tilthv1.JobSpec, t *target.Target) (p *program.Program, o Options, err error) {
	defer schedule.RecoverAs(&err)
	if o, err = optionsOf(spec); err != nil {
		return nil, o, err
	}
	model := spec.GetModel()
	storage, err := Storage(t, o.Numerics, model.GetStorage(), int64(model.GetWeightBits()))
	if err != nil {
		return nil, o, err
	}
	s, err := sourceOf(files, spec.GetName(), model)
	if err != nil {
		return nil, o, err
	}
	p, err = s.program(storage)
	return p, o, err
}

// formats maps the formats of logs.
var formats = map[tilthv1.SeedFormat]importedseeds.LogFormat{
	tilthv1.SeedFormat_SEED_FORMAT_AUTOTVM: importedseeds.AutoTVM, tilthv1.SeedFormat_SEED_FORMAT_ANSOR: importedseeds.Ansor,
}

// seedsOf returns the seeds in files; later files come first.
func seedsOf(files ModelFiles, from []*tilthv1.SeedFile) (*importedseeds.File, error) {
	var logs [][]importedseeds.Entry
	for i, s := range from {
		entries, err := entriesOf(files, s)
		if err != nil {
			return nil, fmt.Errorf("seeds[%d]: %w", i, err)
		}
		logs = append(logs, entries)
	}
	return importedseeds.New(logs...), nil
}

func entriesOf(files ModelFiles, s *tilthv1.SeedFile) ([]importedseeds.Entry, error) {
	f, err := files.open(s.GetFile())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if s.GetFormat() == tilthv1.SeedFormat_SEED_FORMAT_TILTH {
		file, err := importedseeds.Parse(f)
		if err != nil {
			return nil, err
		}
		return file.Entries(), nil
	}
	log, err := importedseeds.ReadLog(f, formats[s.GetFormat()])
	if err != nil {
		return nil, err
	}
	return log.Entries, log.Err()
}
