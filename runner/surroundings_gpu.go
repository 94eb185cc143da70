package runner

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Fields of the tool, in order; see nvidia-smi --help-query-gpu. The active throttle reasons are a bit set;
// bit 0 means that the GPU is idle.
const (
	gpuFields  = "index,temperature.gpu,clocks.sm,clocks.max.sm,clocks_throttle_reasons.active"
	idleReason = 1
	askLimit   = 5 * time.Second
)

// askNVIDIA queries the driver's tool, if installed.
func askNVIDIA(ctx context.Context) (string, error) {
	tool, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return "", fmt.Errorf("asking for GPUs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, tool, "--query-gpu="+gpuFields, "--format=csv,noheader,nounits").Output()
	if err != nil {
		return "", fmt.Errorf("asking for GPUs: %w", err)
	}
	return string(out), nil
}

// gpus adds the GPUs. Unavailable fields contain words such as [N/A].
func (r *SurroundingsReader) gpus(ctx context.Context, s *tilthv1.Surroundings) {
	if r.GPUs == nil {
		return
	}
	csv, err := r.GPUs(ctx)
	if err != nil {
		return
	}
	for _, line := range strings.Split(strings.TrimSpace(csv), "\n") {
		fields := strings.Split(line, ",")
		if len(fields) != strings.Count(gpuFields, ",")+1 {
			continue
		}
		for i := range fields {
			fields[i] = strings.ToValidUTF8(strings.TrimSpace(fields[i]), "?")
		}
		name := "gpu " + fields[0]
		if t, err := strconv.ParseFloat(fields[1], 64); err == nil {
			s.Temperatures = append(s.Temperatures, &tilthv1.Temperature{Sensor: name, Celsius: t})
		}
		if now, err := strconv.ParseFloat(fields[2], 64); err == nil {
			limit, _ := strconv.ParseFloat(fields[3], 64) // 0 if unknown
			s.Clocks = append(s.Clocks, &tilthv1.Clock{Domain: name, Hertz: now * 1e6, MostHertz: limit * 1e6})
		}
		if reasons, err := strconv.ParseUint(fields[4], 0, 64); err == nil {
			throttled := &tilthv1.Throttling{Source: name + " now"}
			if reasons&^idleReason != 0 {
				throttled.Events = 1
			}
			s.Throttling = append(s.Throttling, throttled)
		}
	}
}
