package sketch

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func TestTilesOfOtherCompilersAreTheNearestPoint(t *testing.T) {
	wide, narrow := Target(t, "x86-64-v4"), Target(t, "x86-64-v3")
	conv, product := Conv(t, 56, 64), kerneltest.Product(t, 128, 512, 1536)
	row := searchspace.Tiling{Channels: 32, Columns: 14, Rows: 1, RowTiles: 1, ChannelTiles: 1, Reduce: 16, Unroll: 4, Outside: searchspace.ChannelsOutside}
	for _, c := range []struct {
		name   string
		s      *searchspace.Space
		tiling searchspace.Tiling
		knobs  map[string]int64
	}{
		{"what fits is taken as it is", New(conv, wide, schedule.Default), row,
			map[string]int64{"alg": 0, "tv": 2, "tw": 14, "th": 1, "hb": 1, "cb": 1, "outer": 1, "kb": 16, "ku": 4}},
		{"the tile yields to a smaller register file, the order of blocks stays", New(conv, narrow, schedule.Default), row,
			map[string]int64{"alg": 0, "hb": 1, "cb": 1, "outer": 1, "kb": 16}},
		{"a block of all channels is none", New(conv, wide, schedule.Default), searchspace.Tiling{Channels: 16, Columns: 8, Reduce: 64}, map[string]int64{"tv": 1, "tw": 8, "kb": 0}},
		{"one axis of positions has rows and columns", New(product, wide, schedule.Strict), searchspace.Tiling{Channels: 32, Columns: 7, Rows: 2}, map[string]int64{"tv": 2, "tw": 14}},
		{"a part of a vector is one", New(product, wide, schedule.Strict), searchspace.Tiling{Channels: 4, Columns: 6}, map[string]int64{"tv": 1, "tw": 6}},
	} {
		p, ok := c.s.Tiled(c.tiling)
		if !ok {
			t.Errorf("%s: no point is near", c.name)
			continue
		}
		for k, knob := range c.s.Knobs {
			if want, said := c.knobs[knob.Name]; said && c.s.Active(p, k) && knob.Values[p[k]] != want {
				t.Errorf("%s: %s, want %s=%d", c.name, c.s.Format(p), knob.Name, want)
			}
		}
		if err := c.s.Legal(p); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestTiledPicksTheCheapestOpenKnobs checks that no other choice of an open knob costs less.
func TestTiledPicksTheCheapestOpenKnobs(t *testing.T) {
	s := New(Conv(t, 28, 64), Target(t, "x86-64-v3"), schedule.Strict)
	p, ok := s.Tiled(searchspace.Tiling{Channels: 16, Columns: 4, Rows: 1})
	if !ok {
		t.Fatal("no point is near")
	}
	said := map[string]bool{"tv": true, "tw": true, "th": true}
	for _, q := range s.Neighbours(p) {
		for k := range q {
			if q[k] != p[k] && !said[s.Knobs[k].Name] && s.Cost(q) < s.Cost(p) {
				t.Errorf("%s costs less than %s", s.Format(q), s.Format(p))
			}
		}
	}
}

func TestMapHasNoTiles(t *testing.T) {
	x := kerneltest.Product(t, 1, 2, 1)
	if p, ok := New(x, Target(t, "x86-64-v3"), schedule.Strict).Tiled(searchspace.Tiling{Channels: 16}); ok {
		t.Errorf("one sum has the tile %v", p)
	}
}
