package farm

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// expect checks that the exported metrics contain all lines.
func expect(t *testing.T, reg *prometheus.Registry, lines ...string) {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	for _, line := range lines {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("metrics lack %s:\n%s", line, w.Body)
		}
	}
}

func newAgent(t *testing.T) (*AgentMetrics, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	return NewAgentMetrics(&tilthv1.AgentSpec{Kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, Version: "v1"}, reg), reg
}

func TestAgentIsReadyWhileTheTrackerAnswersIt(t *testing.T) {
	a, reg := newAgent(t)
	call := func(method string, err error) {
		_ = a.count(t.Context(), method, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return err })
	}
	ready := func(want string) {
		t.Helper()
		said := ""
		if err := a.Ready(t.Context()); err != nil {
			said = err.Error()
		}
		if said != want {
			t.Errorf("ready says %q, want %q", said, want)
		}
	}
	ready("no tracker has let the agent join yet")
	call(tilthv1.AgentService_Join_FullMethodName, nil)
	ready("")
	expect(t, reg, "tilth_agent_connected 1", `tilth_agent_info{kind="runner",version="v1"} 1`)
	call(tilthv1.AgentService_Heartbeat_FullMethodName, status.Error(codes.Unavailable, "10.0.0.5 is gone"))
	ready("the tracker does not answer as it should: Unavailable, see the log")
	call(tilthv1.AgentService_LeaseWork_FullMethodName, nil)
	expect(t, reg, "tilth_agent_connected 0", "tilth_agent_heartbeat_seconds_count 1",
		`tilth_agent_calls_total{call="Heartbeat",code="Unavailable"} 1`, `tilth_agent_calls_total{call="LeaseWork",code="OK"} 1`)
	call(tilthv1.AgentService_Heartbeat_FullMethodName, nil)
	ready("")
	call(tilthv1.AgentService_Leave_FullMethodName, nil)
	ready("the agent has left the tracker")
}

func TestLeasesCountByTheirEnd(t *testing.T) {
	a, reg := newAgent(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		ctx context.Context
		err error
	}{
		{t.Context(), nil}, {t.Context(), errors.New("no disk")}, {t.Context(), wire.Refuse(codes.Aborted, wire.ReasonStaleLease, "late")}, {stopped, stopped.Err()},
	} {
		err := a.Handler(agent.HandlerFunc(func(context.Context, *tilthv1.LeaseWorkResponse) error {
			expect(t, reg, "tilth_agent_leases 1")
			return c.err
		})).Handle(c.ctx, nil)
		if !errors.Is(err, c.err) {
			t.Errorf("the handler's %v became %v", c.err, err)
		}
	}
	expect(t, reg, "tilth_agent_leases 0", "tilth_agent_lease_seconds_count 4",
		`tilth_agent_leases_ended_total{end="done"} 1`, `tilth_agent_leases_ended_total{end="failed"} 1`, `tilth_agent_leases_ended_total{end="dropped"} 2`)
}

func TestReportsCountOnceTheyAreAccepted(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := NewBuilderMetrics(reg)
	r := NewRunnerMetrics(reg)
	built := &tilthv1.ReportBuildRequest{Outcomes: []*tilthv1.BuildOutcome{
		{Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, BuildSeconds: 0.5}, {Error: tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, BuildSeconds: 0.5},
	}}
	measured := &tilthv1.ReportMeasurementsRequest{
		Measurements: []*tilthv1.Measurement{{Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, RunSeconds: 0.25, CalibrationRatio: 1.02}},
		InfraError:   tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA,
	}
	for _, err := range []error{errors.New("refused"), nil} {
		if got := b.Report(func(context.Context, *tilthv1.ReportBuildRequest) error { return err })(t.Context(), built); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
		if got := r.Report(func(context.Context, *tilthv1.ReportMeasurementsRequest) error { return err })(t.Context(), measured); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	expect(t, reg, `tilth_builder_candidates_total{error="none"} 1`, `tilth_builder_candidates_total{error="compile_error"} 1`,
		"tilth_builder_candidate_seconds_sum 1", `tilth_runner_candidates_total{error="none"} 1`,
		`tilth_runner_candidates_total{error="device_infra"} 1`, `tilth_runner_calibration_ratio_bucket{le="1.01"} 0`,
		`tilth_runner_calibration_ratio_bucket{le="1.02"} 1`)
}

func TestTunersMetricsHearOfSearches(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewTunerMetrics(reg)
	m.Searched(32, 0.5)
	m.Ranked(3, 1)
	expect(t, reg, "tilth_tuner_candidates_total 32", "tilth_tuner_search_seconds_sum 0.5",
		`tilth_tuner_ranked_pairs_total{order="right"} 3`, `tilth_tuner_ranked_pairs_total{order="wrong"} 1`)
}

func TestEveryServiceNamesItsBuild(t *testing.T) {
	expect(t, newRegistry(Build{Version: "1.2.3", Commit: "abcdef"}),
		`tilth_build_info{commit="abcdef",go_version="`+runtime.Version()+`",version="1.2.3"} 1`)
}
