package op

import "github.com/tilth-dev/tilth/compiler/expr"

// activationFn is an activation of a recurrent layer with the parameters alpha and beta.
type activationFn func(x expr.Expr, alpha, beta float64) expr.Expr

var activationFns = map[string]activationFn{
	"Relu":     func(x expr.Expr, _, _ float64) expr.Expr { return expr.MaxE(x, like(x, 0)) },
	"Tanh":     func(x expr.Expr, _, _ float64) expr.Expr { return expr.Un(expr.Tanh, x) },
	"Sigmoid":  func(x expr.Expr, _, _ float64) expr.Expr { return sigmoid(x) },
	"Softplus": func(x expr.Expr, _, _ float64) expr.Expr { return softplus(x) },
	"Softsign": func(x expr.Expr, _, _ float64) expr.Expr { return softsign(x) },
	"Affine":   linear,
	"LeakyRelu": func(x expr.Expr, alpha, _ float64) expr.Expr {
		return expr.Sel(expr.Bin(expr.Lt, x, like(x, 0)), expr.MulE(x, like(x, alpha)), x)
	},
	"ThresholdedRelu": func(x expr.Expr, alpha, _ float64) expr.Expr {
		return expr.Sel(expr.Bin(expr.Le, like(x, alpha), x), x, like(x, 0))
	},
	"ScaledTanh": func(x expr.Expr, alpha, beta float64) expr.Expr {
		return expr.MulE(like(x, alpha), expr.Un(expr.Tanh, expr.MulE(x, like(x, beta))))
	},
	"HardSigmoid": func(x expr.Expr, alpha, beta float64) expr.Expr { return clamp(linear(x, alpha, beta), 0, 1) },
	"Elu": func(x expr.Expr, alpha, _ float64) expr.Expr {
		return expr.Sel(expr.Bin(expr.Lt, x, like(x, 0)), expr.MulE(expm1(x), like(x, alpha)), x)
	},
}

// activation applies activation k of a recurrent layer's step to a gate, after the clip.
func (n *Node) activation(k int, x expr.Expr) expr.Expr {
	if clip := n.Float("clip", 0); clip > 0 {
		x = clamp(x, -clip, clip)
	}
	return n.unclipped(k, x)
}

// unclipped applies an activation to the cell state, which ONNX Runtime does not clip either.
func (n *Node) unclipped(k int, x expr.Expr) expr.Expr {
	names, alphas, betas := n.Texts("activations"), n.Floats("alphas"), n.Floats("betas")
	if k >= min(len(names), len(alphas), len(betas)) || activationFns[names[k]] == nil {
		n.fail("activation %d is missing or not supported", k)
		return x
	}
	return activationFns[names[k]](x, float64(alphas[k]), float64(betas[k]))
}

// ActivationDefaults returns the parameters of an activation, "alphas" and "betas", with their default values.
func ActivationDefaults(name string) map[string]float32 {
	switch name {
	case "Affine", "ScaledTanh":
		return map[string]float32{"alphas": 1, "betas": 0}
	case "LeakyRelu":
		return map[string]float32{"alphas": 0.01}
	case "ThresholdedRelu", "Elu":
		return map[string]float32{"alphas": 1}
	case "HardSigmoid":
		return map[string]float32{"alphas": 0.2, "betas": 0.5}
	}
	return nil
}
