package runner

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/compiler/backend"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// scripted is a monitor with given readings.
type scripted struct {
	health backend.Health
	err    error
}

func (scripted) Name() string { return "card" }

func (s *scripted) Read(context.Context) (backend.Reading, error) {
	return backend.Reading{Compute: []float64{2}, Memory: []float64{3}, Health: s.health}, s.err
}

// TestDevicesHealthIsReported together with its machine's surroundings.
func TestDevicesHealthIsReported(t *testing.T) {
	slowed := true
	seen := &scripted{health: backend.Health{
		Celsius: []float64{91}, Clocks: []backend.DeviceClock{{Part: "memory", Hertz: 2e9, Max: 3e9}}, Slowed: &slowed,
		Errors: &backend.MemoryErrors{Corrected: 4}, Impairments: []string{"is slowed down to cool"},
	}}
	host := func(context.Context) *tilthv1.Surroundings {
		return &tilthv1.Surroundings{Temperatures: []*tilthv1.Temperature{{Sensor: "cpu", Celsius: 40}}}
	}
	m := NewMonitored(seen, host, slog.New(slog.DiscardHandler))
	if times, err := m.Run(t.Context()); err != nil || times.Compute[0] != 2 || times.Memory[0] != 3 {
		t.Errorf("times %+v, %v", times, err)
	}
	want := &tilthv1.Surroundings{
		Temperatures: []*tilthv1.Temperature{{Sensor: "cpu", Celsius: 40}, {Sensor: "gpu", Celsius: 91}},
		Clocks:       []*tilthv1.Clock{{Domain: "gpu memory", Hertz: 2e9, MostHertz: 3e9}},
		Throttling:   []*tilthv1.Throttling{{Source: "gpu now", Events: 1}},
		MemoryErrors: []*tilthv1.MemoryErrors{{Memory: "gpu", Corrected: 4}},
		Impairments:  []string{"is slowed down to cool"},
	}
	if got := m.Surroundings(t.Context()); !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	seen.err = errors.New("lost")
	if _, err := m.Run(t.Context()); !errors.Is(err, seen.err) {
		t.Errorf("got %v", err)
	}
}

// TestDeviceWhoseHealthIsNotKnownSaysSoOnce and is still calibrated.
func TestDeviceWhoseHealthIsNotKnownSaysSoOnce(t *testing.T) {
	var log bytes.Buffer
	m := NewMonitored(&scripted{health: backend.Health{Unknown: "no library"}}, func(context.Context) *tilthv1.Surroundings { return nil },
		slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		if _, err := m.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "no library"); n != 1 {
		t.Errorf("it says so %d times:\n%s", n, log.String())
	}
	if got := m.Surroundings(t.Context()); !proto.Equal(got, &tilthv1.Surroundings{}) {
		t.Errorf("got %v", got)
	}
}
