package op

import (
	"errors"
	"fmt"
	"slices"
)

// name identifies an operator in its domain.
type name struct{ domain, op string }

// defs holds every operator once: those with tensor expressions, those that are expanded, and the forms of some.
var defs = index(Lowered, Operators, Forms)

func index(lowered, expanded []Def, forms []Form) map[name]*Def {
	m := map[name]*Def{}
	for _, d := range slices.Concat(lowered, expanded) {
		m[name{d.Domain, d.Name}] = &d
	}
	for _, f := range forms {
		d := m[name{"", f.Name}]
		d.Expand, d.Expands = f.Expand, f.Applies
	}
	return m
}

// Find returns the operator of a domain, which is empty for ONNX's own; nil if none exists.
func Find(domain, operator string) *Def { return defs[name{domain, operator}] }

// InferNode finds the node's operator among ONNX's own, checks operands and attributes, and sets Out. The error
// does not include the node's name.
func InferNode(n *Node) error {
	if why, ok := refused[n.Op]; ok {
		return errors.New(why)
	}
	d := Find("", n.Op)
	if d == nil {
		return fmt.Errorf("the operator is not supported")
	}
	if err := Infer(n, d); err != nil {
		return err
	}
	return checkIndices(n)
}

// refused gives the reason why known operators are unsupported, and a remedy.
var refused = map[string]string{
	"Bernoulli":         random,
	"Multinomial":       random,
	"RandomNormal":      random,
	"RandomNormalLike":  random,
	"RandomUniform":     random,
	"RandomUniformLike": random,
	"ImageDecoder":      "images are not decoded: export the model from the decoded image on",
	"StringNormalizer":  "strings are not supported: export the model from the tokens on",
	"StringConcat":      "strings are not supported: export the model from the tokens on",
	"StringSplit":       "strings are not supported: export the model from the tokens on",
	"RegexFullMatch":    "strings are not supported: export the model from the tokens on",
	"TfIdfVectorizer":   "counting n-grams is not supported: export the model from the counts on",
	"LabelEncoder":      "strings and maps are not supported: export the model from the tokens on",
	"DictVectorizer":    "maps are not supported: export the model from the tensor on",
	"CategoryMapper":    "strings are not supported: export the model from the tokens on",
	"FeatureVectorizer": "operators of ai.onnx.ml are not supported: export the model without them",
}

// random is the error for operators that draw random numbers: their results are not reproducible.
const random = "random numbers are not supported: export the model for inference, or with the numbers as an input"
