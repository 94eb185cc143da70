package agent_test

import (
	"context"
	"testing"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestAgentsReceiveCalibrationRequests checks the requests at joining, and in heartbeats until the report.
func TestAgentsReceiveCalibrationRequests(t *testing.T) {
	f := newFarm(t)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan string)
	done := make(chan error, 1)
	go func() {
		done <- agent.Run(ctx, agent.Config{
			Conn: f.conn,
			Spec: &tilthv1.AgentSpec{
				Name: "board", Kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, Capabilities: []string{"calibrate"},
				DeviceClasses: []*tilthv1.DeviceClass{{Name: "x86"}},
			},
			Handler: agent.HandlerFunc(func(context.Context, *tilthv1.LeaseWorkResponse) error { return nil }),
			Calibrate: func(session string) {
				select {
				case asked <- session:
				case <-ctx.Done():
				}
			},
		})
	}()
	first := <-asked
	if again := <-asked; again != first {
		t.Errorf("asked in session %q and then in %q", first, again)
	}
	if _, err := tilthv1.NewDeviceServiceClient(f.conn).ReportCalibration(t.Context(), &tilthv1.ReportCalibrationRequest{
		Session: first, Report: &tilthv1.CalibrationReport{Kernels: "k", ComputeSeconds: []float64{1}, MemorySeconds: []float64{1}},
	}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
