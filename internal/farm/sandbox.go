package farm

import (
	"cmp"
	"path/filepath"

	"github.com/tilth-dev/tilth/internal/sandbox"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// openSandbox opens a sandbox and reports missing isolation mechanisms to the farm and to the log.
func openSandbox(mode sandbox.Mode, b *base) (*sandbox.Sandbox, error) {
	mode = cmp.Or(mode, sandbox.BestEffort)
	box, err := sandbox.Open(mode, filepath.Join(b.scratch, "sandbox"))
	if err != nil {
		return nil, err
	}
	if mode == sandbox.Off {
		b.cfg.Logger.Warn("no sandbox: what runs here for the farm may do whatever this user may")
	}
	for _, missing := range box.Missing() {
		b.cfg.Logger.Warn("a sandbox layer is unavailable", "layer", missing)
	}
	for _, s := range box.States() {
		how := s.How
		if s.Except != "" {
			b.cfg.Logger.Warn("a sandbox layer is unavailable for some programs", "layer", s.Layer, "except", s.Except)
			how += ", except around " + s.Except
		}
		b.spec.Sandbox = append(b.spec.Sandbox, &tilthv1.SandboxLayer{Name: string(s.Layer), How: how, Missing: s.Missing, Substitute: s.Substitute})
	}
	return box, nil
}
