package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// results is the file with the reference's results, which are computed by a harness that loads no candidates. It is open for reading
// only: what candidates are compared with, now and later, is out of their reach.
type results struct {
	*os.File
}

// openResults finds or computes the results of a plan's reference.
func openResults(ctx context.Context, p Plan) (*results, error) {
	if p.ReferenceCache != "" {
		f, err := os.Open(p.ReferenceCache)
		if err == nil {
			return &results{f}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the reference's results: %w", err)
		}
	}
	r := &results{}
	return r, r.compute(ctx, p)
}

// compute runs the reference and keeps what it gives. A file that cannot be kept costs time later, nothing else; it never appears half
// written.
func (r *results) compute(ctx context.Context, p Plan) error {
	dir := p.Scratch
	if p.ReferenceCache != "" {
		dir = filepath.Dir(p.ReferenceCache)
	}
	file, err := os.CreateTemp(dir, ".results-*")
	if err != nil {
		return fmt.Errorf("the reference's results: %w", err)
	}
	defer os.Remove(file.Name()) // fails when it was renamed
	err = runReference(ctx, p, file)
	var reading *os.File
	if err == nil {
		reading, err = os.Open(file.Name())
	}
	if err = cmp.Or(err, file.Close()); err != nil {
		return err
	}
	if p.ReferenceCache != "" {
		_ = os.Rename(file.Name(), p.ReferenceCache)
	}
	if r.File != nil {
		err = r.Close()
	}
	r.File = reading
	return err
}

// runReference lets a harness compute the results into a file.
func runReference(ctx context.Context, p Plan, file *os.File) error {
	p.Candidates = nil
	command := p.sandboxed(append(p.common(), "--compute", "1", p.Reference), mostResultsBytes)
	proc, err := startProcess(ctx, p.Sandbox, command, file)
	if err != nil {
		return err
	}
	err = proc.followReference(p)
	ending := proc.kill()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("measuring: %w", context.Cause(ctx))
	case errors.Is(err, errDone):
		return nil
	}
	var infra *infraError
	if errors.As(err, &infra) {
		return err
	}
	return fmt.Errorf("harness: the reference fails: %w %s", err, ending)
}

// followReference reads events until the results are written (errDone) or something goes wrong.
func (p *process) followReference(plan Plan) error {
	for {
		e, err := p.next(plan.Limits.Reference)
		switch {
		case err != nil:
			return err
		case e.Event == "start" && e.Index == -1:
		case e.Event == "done":
			return errDone
		case e.Event == "error", e.Event == "fault":
			return &infraError{e.Message}
		default:
			return errGarbled
		}
	}
}
