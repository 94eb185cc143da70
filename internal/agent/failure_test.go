package agent

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func TestFarmErrorsHaveTheirClass(t *testing.T) {
	const own, farm = tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA
	lost := fmt.Errorf("batch 7: %w", &FarmError{io.ErrUnexpectedEOF})
	if FailureClass(lost, own) != farm || FailureClass(io.EOF, own) != own {
		t.Errorf("%v, %v", FailureClass(lost, own), FailureClass(io.EOF, own))
	}
	if !errors.Is(lost, io.ErrUnexpectedEOF) || lost.Error() != "batch 7: unexpected EOF" {
		t.Error(lost)
	}
}

func TestMessageIsALineOfUTF8(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"one line":                            "one line",
		"no such file: \xff.c\ninclude …":     "no such file: \uFFFD.c",
		"\x1b[2J gone\r\n":                    "[2J gone",
		strings.Repeat("x", wire.TextBytes+1): strings.Repeat("x", wire.TextBytes),
	} {
		if got := FailureMessage(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
