package authz

import (
	"testing"

	"google.golang.org/grpc/metadata"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// BenchmarkAdmit measures authentication per call, including the check for a changed tokens file.
func BenchmarkAdmit(b *testing.B) {
	closed, token := closedGate(b)
	header := metadata.Pairs("authorization", "Bearer "+token)
	for _, c := range []struct {
		name string
		gate *Gate
	}{{"open", New(Config{})}, {"closed", closed}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.gate.Admit(b.Context(), tilthv1.JobService_GetJob_FullMethodName, header); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
