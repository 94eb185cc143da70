package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var reshapeDefs = []Def{
	{Name: Reshape, Kind: Reshaping, MinIn: 2, MaxIn: 2, Infer: inferReshape},
	{Name: "Flatten", Kind: Reshaping, MinIn: 1, MaxIn: 1, Infer: inferFlatten},
	{Name: Squeeze, Kind: Reshaping, MinIn: 1, MaxIn: 2, Infer: inferSqueeze},
	{Name: Unsqueeze, Kind: Reshaping, MinIn: 1, MaxIn: 2, Infer: inferUnsqueeze},
	{
		Name: Transpose, Kind: Permute, MinIn: 1, MaxIn: 1, Perm: permutation,
		Infer: func(n *Node) (Type, error) {
			perm := permutation(n)
			return Type{n.In[0].DType, extent.Fixed(Physical(n.In[0].Shape.Fixed(), perm)...)}, n.err
		},
	},
}

func permutation(n *Node) []int {
	rank := n.In[0].Shape.Rank()
	list := n.Ints("perm", nil)
	if list == nil {
		perm := RowMajor(rank)
		slices.Reverse(perm)
		return perm
	}
	n.axes(list, rank)
	if len(list) != rank {
		n.fail("perm %v does not have %d axes", list, rank)
		return RowMajor(rank)
	}
	perm := make([]int, rank)
	for k, v := range list {
		perm[k] = n.axis(v, rank)
	}
	return perm
}

func inferReshape(n *Node) (Type, error) {
	target := slices.Clone(n.KnownInts(1, "shape"))
	if n.err != nil {
		return Type{}, n.err
	}
	in := n.In[0]
	open, rest := -1, int64(1)
	for k, e := range target {
		switch {
		case e == 0 && n.Int("allowzero", 0) == 0:
			if k >= in.Shape.Rank() {
				return Type{}, fmt.Errorf("shape %v copies axis %d of %v", target, k, in.Type)
			}
			target[k] = in.Shape.Fixed()[k]
		case e == -1 && open < 0:
			open = k
			continue
		case e < 0:
			return Type{}, fmt.Errorf("shape %v has a negative extent", target)
		}
		rest *= target[k]
		if rest < 0 || rest > 1<<48 {
			return Type{}, fmt.Errorf("shape %v is too large", target)
		}
	}
	total := array.Elements(in.Shape.Fixed())
	if open >= 0 {
		if rest == 0 || total%rest != 0 {
			return Type{}, fmt.Errorf("%v cannot take shape %v", in.Type, target)
		}
		target[open] = total / rest
		rest *= target[open]
	}
	if rest != total {
		return Type{}, fmt.Errorf("%v cannot take shape %v", in.Type, target)
	}
	return Type{in.DType, extent.Fixed(target...)}, nil
}

func inferFlatten(n *Node) (Type, error) {
	in := n.In[0]
	axis := n.Int("axis", 1)
	if axis < 0 {
		axis += int64(in.Shape.Rank())
	}
	if axis < 0 || axis > int64(in.Shape.Rank()) {
		return Type{}, fmt.Errorf("axis %d is outside %v", axis, in.Type)
	}
	return Type{in.DType, extent.Fixed(array.Elements(in.Shape.Fixed()[:axis]), array.Elements(in.Shape.Fixed()[axis:]))}, nil
}

func inferSqueeze(n *Node) (Type, error) {
	in := n.In[0]
	list := n.IntsOr(1, "axes")
	set := n.axes(list, in.Shape.Rank())
	shape := []int64{}
	for k, e := range in.Shape.Fixed() {
		if set[k] && e != 1 {
			return Type{}, fmt.Errorf("axis %d of %v is not 1", k, in.Type)
		}
		if !set[k] && (list != nil || e != 1) {
			shape = append(shape, e)
		}
	}
	return Type{in.DType, extent.Fixed(shape...)}, nil
}

func inferUnsqueeze(n *Node) (Type, error) {
	in := n.In[0]
	list := n.IntsOr(1, "axes")
	set := n.axes(list, in.Shape.Rank()+len(list))
	rest := in.Shape.Fixed()
	shape := []int64{}
	for _, added := range set {
		if added || len(rest) == 0 {
			shape = append(shape, 1)
			continue
		}
		shape, rest = append(shape, rest[0]), rest[1:]
	}
	return Type{in.DType, extent.Fixed(shape...)}, nil
}
