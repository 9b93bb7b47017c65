"""Layouts, against NumPy's own strides and against enumeration."""

import itertools
import pickle
import unittest

import numpy as np

import axe


class Apply(unittest.TestCase):
    def test_strided_layouts_are_numpys_addresses(self):
        array = np.arange(4 * 6 * 5, dtype=np.float32).reshape(4, 6, 5).transpose(2, 0, 1)[1:4, :, ::2]
        layout = axe.Layout.of(array)
        index = np.indices(array.shape)
        got = layout.apply(*index, shape=array.shape)["m"]
        want = sum(i * s // array.itemsize for i, s in zip(index, array.strides))
        np.testing.assert_array_equal(got, want)

    def test_integers_give_integers_and_arrays_broadcast(self):
        layout = axe.Layout("S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]")
        self.assertEqual(layout.apply(2, 5, shape=(8, 8)), {"lane": 10, "reg": 1})
        self.assertEqual(layout.apply(21), {"lane": 10, "reg": 1})
        got = layout.apply(np.arange(8)[:, None], np.arange(8)[None], shape=(8, 8))
        self.assertEqual(got["lane"].shape, (8, 8))
        for i, j in itertools.product(range(8), range(8)):
            self.assertEqual(layout.apply(i, j, shape=(8, 8)), {axis: got[axis][i, j] for axis in got})

    def test_copies_are_one_more_dimension(self):
        layout = axe.Layout("S[(8, 4) : (4@lane, 1@lane)] + R[2 : 1@warp]")
        got = layout.apply(np.arange(3))
        self.assertEqual(got["warp"].tolist(), [[0, 1]] * 3)
        self.assertEqual(got["lane"].tolist(), [[0, 0], [1, 1], [2, 2]])

    def test_what_is_outside_is_refused(self):
        layout = axe.Layout.row_major((4, 4))
        for index, shape, error in [
            ((4, 0), (4, 4), IndexError),
            ((-1, 0), (4, 4), IndexError),
            ((0,), (4, 4), TypeError),
            ((0, 0), None, TypeError),
            ((0.5,), None, TypeError),
            ((16,), None, axe.LayoutError),
        ]:
            with self.subTest(index=index, shape=shape):
                with self.assertRaises(error):
                    layout.apply(*index, shape=shape)

    def test_inversion_finds_every_index(self):
        layout = axe.Layout("S[(2, 8, 4, 2) : (2@reg, 4@lane, 1@lane, 1@reg)]")
        for index in range(layout.size):
            self.assertIn(index, layout.invert(**layout.apply(index)))
        self.assertEqual(layout.invert(lane=99).size, 0)


class Algebra(unittest.TestCase):
    def test_equal_maps_are_equal_and_hash_alike(self):
        a, b = axe.Layout("S[(4, 2, 8) : (16, 8, 1)]"), axe.Layout("S[64 : 1]")
        self.assertEqual(a, b)
        self.assertEqual(hash(a), hash(b))
        self.assertNotEqual(a, axe.Layout("S[64 : 2]"))
        self.assertNotEqual(a, "S[64 : 1]")
        self.assertEqual(len({a, b, axe.Layout("S[(2, 32) : (32, 1)]")}), 1)

    def test_slices_are_the_indices_of_the_box(self):
        layout = axe.Layout.row_major((8, 8))
        part = layout.slice((8, 8), slice(2, 6), slice(4, None))
        whole = np.arange(64).reshape(8, 8)
        np.testing.assert_array_equal(part.apply(np.arange(16))["m"], whole[2:6, 4:].ravel())
        np.testing.assert_array_equal(layout.slice((8, 8), -1, slice(None)).apply(np.arange(8))["m"], whole[-1])
        with self.assertRaises(ValueError):
            layout.slice((8, 8), slice(0, 8, 2), slice(None))

    def test_tiles_and_their_factors(self):
        warps = axe.Layout("S[(2, 2) : (2@warp, 1@warp)]")
        atom = axe.Layout("S[(8, 4) : (4@lane, 1@lane)]")
        tiled = warps.tile((2, 2), atom, (8, 4))
        self.assertEqual(str(tiled), "S[(2, 8, 2, 4) : (2@warp, 4@lane, 1@warp, 1@lane)]")
        self.assertEqual(tiled.tile_of((16, 8), atom, (8, 4)), warps)
        with self.assertRaises(axe.LayoutError) as caught:
            tiled.tile_of((16, 8), "S[(8, 4) : (1@lane, 8@lane)]", (8, 4))
        self.assertEqual(caught.exception.kind, "none")

    def test_groups_and_permutations(self):
        layout, ends = axe.Layout("S[64 : 1]").group((16, 4))
        self.assertEqual((str(layout), ends), ("S[(16, 4) : (4, 1)]", [0, 1, 2]))
        turned = layout.permute((16, 4), (1, 0))
        np.testing.assert_array_equal(turned.apply(np.arange(64))["m"], np.arange(64).reshape(16, 4).T.ravel())

    def test_texts_parse_or_say_where_not(self):
        layout = axe.Layout("S[(8, 4) : (4@lane, 1@lane)] + R[2 : 1@warp] + 3@warp")
        self.assertEqual(axe.Layout(str(layout)), layout)
        self.assertEqual(eval(repr(layout), {"Layout": axe.Layout}), layout)
        self.assertEqual(pickle.loads(pickle.dumps(layout)), layout)
        with self.assertRaises(axe.LayoutError) as caught:
            axe.Layout("S[(8")
        self.assertEqual(caught.exception.kind, "invalid")
        self.assertIn("at byte 4", str(caught.exception))

    def test_pictures(self):
        layout = axe.Layout("S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]")
        self.assertTrue(layout._repr_svg_().startswith("<svg"))
        self.assertIn("lane", layout.table((8, 8)))
        self.assertIsNone(axe.Layout(f"S[{1 << 40} : 1]")._repr_svg_())
        with self.assertRaises(axe.LayoutError):
            layout.svg((8, 8), banks=3)


if __name__ == "__main__":
    unittest.main()
