package builder

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestPackageOrTheReasonForItsAbsenceIsReported checks who is to blame: the model, the builder or the farm.
func TestPackageOrTheReasonForItsAbsenceIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		failure string
		err     error
		// class is unset for a failure of the model.
		class tilthv1.ErrorClass
		want  string
	}{
		"made":               {},
		"an unusable model":  {failure: "model net: no ONNX\nfile", want: "model net: no ONNX"},
		"a refused kernel":   {err: &toolchain.Error{Kind: toolchain.Rejected, Step: "compiling", Message: "no such instruction"}, want: "no such instruction"},
		"a compiler's limit": {err: &toolchain.Error{Kind: toolchain.Limit, Step: "compiling", Message: "takes too long"}, want: "takes too long"},
		"no compiler": {
			err:   &toolchain.Error{Kind: toolchain.Infra, Step: "compiling", Message: "clang is missing"},
			class: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, want: "clang is missing",
		},
		"a lost model": {
			err:   &agent.FarmError{Cause: errors.New("the tracker lost it")},
			class: tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, want: "the tracker lost it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, newCompiler(t, ""), native(t))
			var got *tilthv1.ReportRunRequest
			f.builder.Packages = &Packages{
				Make: func(_ context.Context, _ *tilthv1.Job, _ *target.Target, _ *toolchain.Toolchain, output string) (string, error) {
					return c.failure, errors.Join(c.err, os.WriteFile(output, []byte("a package"), 0o600))
				},
				Report: func(_ context.Context, r *tilthv1.ReportRunRequest) error { got = r; return nil },
			}
			err := f.builder.Handle(t.Context(), &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Run{
				Run: &tilthv1.RunWork{Job: &tilthv1.Job{Spec: &tilthv1.JobSpec{Target: f.spec}}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			made := got.GetResult().GetOutputs().GetDigest() != ""
			if why := got.GetFailure() + got.GetInfraMessage(); got.GetInfraError() != c.class || !strings.Contains(why, c.want) || made != (c.want == "") {
				t.Errorf("the report is %v", got)
			}
		})
	}
}

func TestBuilderOfAnotherCompilerReportsIt(t *testing.T) {
	f := newFarm(t, newCompiler(t, ""), native(t))
	f.spec.Toolchain = "clang-1"
	f.builder.Packages = &Packages{Report: func(_ context.Context, r *tilthv1.ReportRunRequest) error {
		if r.GetInfraError() != tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA || !strings.Contains(r.GetInfraMessage(), "clang-1") {
			t.Errorf("the report is %v", r)
		}
		return nil
	}}
	work := &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Run{Run: &tilthv1.RunWork{Job: &tilthv1.Job{Spec: &tilthv1.JobSpec{Target: f.spec}}}}}
	if err := f.builder.Handle(t.Context(), work); err != nil {
		t.Error(err)
	}
	f.builder.Packages = nil
	if err := f.builder.Handle(t.Context(), work); err == nil {
		t.Error("a builder that makes no packages makes one")
	}
}
