"""Pages of `recon view` in headless Chromium. Standard library only; tests/cli/view.rs runs it.

    view.py write FOLDER             writes NumPy arrays
    view.py check FOLDER             compares the pixels of pages with the numbers of the arrays
    view.py time PAGE ...            prints size and seconds until the first image is drawn
    view.py picture PAGE FILE.png    takes a picture of a page; #slice=3&mode=phase may follow the name of the page
"""

import array
import base64
import cmath
import http.server
import math
import os
import struct
import sys
import threading
from functools import partial
from pathlib import Path

from browser import Browser

NX, NY, NZ, COILS = 5, 6, 4, 2
# The images of series.h5, which tests/cli/view.rs writes.
SLICES, REPETITIONS = 3, 2
# Names with characters of HTML. The second is in the folder "<".
NAMES = ["a<b>&\"'.npy", "</script><!--<script>.npy"]


def magnitude(x, y, z):
    """Returns the voxels of magnitude.npy."""
    return 1.0 + ((7 * x + 3 * y + 11 * z) % 13) / 4


def signed(x, y, z):
    """Returns the voxels of signed.npy."""
    return 20.0 * (x - 2) + 3.0 * y - 10.0 * z


def complex_voxel(x, y, z, coil):
    """Returns the voxels of complex.npy."""
    return cmath.rect(0.5 + ((5 * x + 2 * y + 3 * z + coil) % 11) / 3, 0.9 * x - 0.7 * y + 0.5 * z + 2.0 * coil - 1.0)


def series(x, y, slice_number, repetition):
    """Returns the voxels of series.h5."""
    return 1.0 + x + 10 * y + 100 * slice_number + 1000 * repetition


def small(x, y):
    """Returns the voxels of small.npy."""
    return 1.0 + x + 4 * y


def write_array(path, dtype, shape, values):
    """Writes an array of NumPy; the last axis is the fastest."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    numbers = [part for v in values for part in ((v.real, v.imag) if dtype == "<c8" else (v,))]
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    Path(path).write_bytes(start + array.array("f", numbers).tobytes())


def write(folder):
    """Writes the arrays."""
    grid = [(x, y, z) for z in range(NZ) for y in range(NY) for x in range(NX)]
    write_array(folder / "magnitude.npy", "<f4", (NZ, NY, NX), [magnitude(*at) for at in grid])
    write_array(folder / "signed.npy", "<f4", (NZ, NY, NX), [signed(*at) for at in grid])
    voxels = [complex_voxel(*at, coil) for coil in range(COILS) for at in grid]
    write_array(folder / "complex.npy", "<c8", (COILS, NZ, NY, NX), voxels)
    write_array(folder / "small.npy", "<f4", (3, 4), [small(x, y) for y in range(3) for x in range(4)])
    (folder / "<").mkdir()
    for name in NAMES:
        write_array(folder / name, "<f4", (3, 4), [small(x, y) for y in range(3) for x in range(4)])


def pixels(browser, panel):
    """Returns columns, rows and grey values of a panel, which must be grey and opaque."""
    width, height, data = browser.js(
        f"(() => {{ const c = document.querySelector('#panel-{panel} canvas');"
        # A copy: Chromium warns if the canvas itself is read more than once.
        " const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', { willReadFrequently: true });"
        " copy.drawImage(c, 0, 0);"
        " return [c.width, c.height, [...copy.getImageData(0, 0, c.width, c.height).data]]; })()")
    for i in range(0, len(data), 4):
        assert data[i] == data[i + 1] == data[i + 2] and data[i + 3] == 255, data[i:i + 4]
    return width, height, data[::4]


def compare(browser, panel, size, value, window, bound):
    """Compares a panel with the value at each column and row. `bound` is the largest error of a value."""
    width, height, grey = pixels(browser, panel)
    assert (width, height) == size, (width, height, size)
    black, white = window
    shades = set()
    for i, level in enumerate(grey):
        exact = 255 * (value(i % width, i // width) - black) / (white - black)
        allowed = 255 * bound / (white - black) + 0.51
        assert abs(level - min(255, max(0, exact))) <= allowed, (panel, i % width, i // width, level, exact, allowed)
        shades.add(level)
    assert len(shades) > 3, f"{panel}: the picture has only the grey values {shades}"


def largest(value, *sizes):
    """Returns the largest magnitude of a function of indices."""
    points = [()]
    for n in sizes:
        points = [(*p, i) for p in points for i in range(n)]
    return max(abs(value(*p)) for p in points)


def caption(browser, panel):
    return browser.js(f"document.querySelector('#panel-{panel} figcaption').textContent")


def act(browser, expression):
    """Runs JavaScript that changes the page, and waits for the new picture."""
    before = browser.js("document.documentElement.dataset.drawn")
    browser.js(expression)
    browser.wait(f"document.documentElement.dataset.drawn !== '{before}'")


def slide(browser, name, value):
    """Moves a slider."""
    act(browser, f"(() => {{ const e = document.getElementById('{name}'); e.value = {value};"
                 " e.dispatchEvent(new Event('input')); })()")


def press(browser, key, code=None):
    """Presses a key."""
    before = browser.js("document.documentElement.dataset.drawn")
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key)
    browser.wait(f"document.documentElement.dataset.drawn !== '{before}'")


def place(browser, panel, column, row):
    """Returns the point of the window in the middle of a pixel of a panel."""
    return browser.js(
        f"(() => {{ const c = document.querySelector('#panel-{panel} canvas'); const b = c.getBoundingClientRect();"
        f" return [b.left + b.width * ({column} + 0.5) / c.width, b.top + b.height * ({row} + 0.5) / c.height]; }})()")


def mouse(browser, kind, at, **more):
    browser.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], **more)


def check_magnitudes(browser, page):
    """Magnitude in all planes; x to the right, y and z upwards, and y to the left in the plane y, z."""
    step = largest(magnitude, NX, NY, NZ) / 255
    views = [
        ("#right=-1&low=0.5&high=3.5&slice=1", (NX, NY), lambda c, r: magnitude(c, NY - 1 - r, 1)),
        ("#right=-1&low=1&high=3&slice=3", (NX, NY), lambda c, r: magnitude(c, NY - 1 - r, 3)),
        ("#right=-1&low=0.5&high=4&plane=1&slice=2", (NX, NZ), lambda c, r: magnitude(c, 2, NZ - 1 - r)),
        ("#right=-1&low=0.5&high=4&plane=2&slice=4", (NY, NZ), lambda c, r: magnitude(4, NY - 1 - c, NZ - 1 - r)),
    ]
    for fragment, size, value in views:
        browser.open(page, fragment)
        low, high = [float(fragment.split(f"{name}=")[1].split("&")[0]) for name in ("low", "high")]
        compare(browser, "left", size, value, (low, high), step / 2)
    # The first slice is the middle one.
    browser.open(page, "#right=-1&low=0.5&high=4")
    compare(browser, "left", (NX, NY), lambda c, r: magnitude(c, NY - 1 - r, NZ // 2), (0.5, 4), step / 2)
    assert "z = 2" in caption(browser, "left")


def check_signed_numbers(browser, page):
    """Real numbers with a sign are values, not magnitudes."""
    browser.open(page, "#left=1&right=-1&low=-80&high=60&slice=2")
    step = (max(signed(4, 5, 0), 0) - signed(0, 0, 3)) / 254
    compare(browser, "left", (NX, NY), lambda c, r: signed(c, NY - 1 - r, 2), (-80, 60), step / 2)
    assert browser.js("document.getElementById('magnitude-name').textContent") == "value"


def check_complex_numbers(browser, page):
    """Magnitude and phase of coils."""
    step = largest(complex_voxel, NX, NY, NZ, COILS) / 255
    for coil in range(COILS):
        voxel = lambda c, r: complex_voxel(c, NY - 1 - r, 1, coil)
        browser.open(page, f"#left=2&right=-1&low=0&high=4&slice=1&coil={coil}")
        compare(browser, "left", (NX, NY), lambda c, r: abs(voxel(c, r)), (0, 4), step / 2)
        browser.open(page, f"#left=2&right=-1&mode=phase&slice=1&coil={coil}")
        width, height, grey = pixels(browser, "left")
        for i, level in enumerate(grey):
            # A phase near pi may be shown as -pi.
            shown = -math.pi + 2 * math.pi * level / 255
            error = cmath.phase(voxel(i % width, i // width) * cmath.exp(-1j * shown))
            assert abs(error) <= math.pi / 64 + 0.51 * 2 * math.pi / 255, (i, level, error)
        assert len(set(grey)) > 10
    # An image without phases says so.
    browser.open(page, "#left=0&right=2&mode=phase")
    assert "no phase: the numbers are real" in caption(browser, "left"), caption(browser, "left")
    assert "rad" in caption(browser, "right")


def check_differences(browser, page):
    """Differences of magnitudes, their scaling and their reasons."""
    steps = [largest(magnitude, NX, NY, NZ) / 255, largest(complex_voxel, NX, NY, NZ, COILS) / 255]
    grid = [(x, y, z) for z in range(NZ) for y in range(NY) for x in range(NX)]
    products = sum(magnitude(*at) * abs(complex_voxel(*at, 0)) for at in grid)
    best = products / sum(magnitude(*at) ** 2 for at in grid)
    for choice, factor in (("1", 1.0), ("best", best)):
        browser.open(page, f"#left=0&right=2&mode=difference&slice=3&low=-4&high=4&factor={choice}")
        difference = lambda c, r: (factor * magnitude(c, NY - 1 - r, 3) - abs(complex_voxel(c, NY - 1 - r, 3, 0)))
        # The best factor of rounded values differs from that of the numbers by less than a tenth of a percent.
        bound = (factor * steps[0] + steps[1]) / 2 + (0.004 if factor != 1 else 0)
        compare(browser, "difference", (NX, NY), difference, (-4, 4), bound)
        text = caption(browser, "difference")
        assert "only the right image is complex: magnitudes are compared" in text, text
        assert ("no scaling" in text) == (factor == 1) and ("scaled by" in text) == (factor != 1), text
        # The window of a difference does not change that of the images.
        assert "black 0," in caption(browser, "left")
    # A signed image and a magnitude: absolute values, and the page says so.
    browser.open(page, "#left=1&right=0&mode=difference&slice=0&low=-60&high=60")
    difference = lambda c, r: abs(signed(c, NY - 1 - r, 0)) - magnitude(c, NY - 1 - r, 0)
    compare(browser, "difference", (NX, NY), difference, (-60, 60), 0.5)
    assert "only the left image has a sign: magnitudes" in caption(browser, "difference")
    # Images of different sizes.
    browser.open(page, "#left=0&right=3&mode=difference")
    why = browser.js("document.getElementById('why').textContent")
    assert why == "No difference: the left image has 5 × 6 × 4 voxels, the right one 4 × 3 × 1.", why
    assert browser.js("document.querySelector('input[value=difference]').disabled")
    assert browser.js("document.getElementById('panel-difference').hidden")
    assert pixels(browser, "right")[:2] == (4, 3)
    # One image.
    browser.open(page, "#right=-1&mode=difference")
    assert "needs two images" in browser.js("document.getElementById('why').textContent")
    # Phase differences of two coils cannot be selected, but those of an image with itself are 0.
    browser.open(page, "#left=2&right=2&mode=phasedifference")
    width, height, grey = pixels(browser, "difference")
    assert set(grey) <= {127, 128}, set(grey)


def check_series(browser, page):
    """Slices and repetitions of an ISMRMRD file, in the orientation of the patient."""
    browser.open(page, "#left=4&right=-1")
    names = lambda: [browser.js(f"document.getElementById('{n}-name').textContent") for n in ("slice", "frame")]
    assert names() == ["slice 1", "repetition 0"], names()
    assert "right L, bottom P" in caption(browser, "left")
    top = series(NX - 1, NY - 1, SLICES - 1, REPETITIONS - 1)
    for slice_number in range(SLICES):
        for repetition in range(REPETITIONS):
            slide(browser, "slice", slice_number)
            slide(browser, "frame", repetition)
            assert names() == [f"slice {slice_number}", f"repetition {repetition}"], names()
            first = series(0, 0, slice_number, repetition)
            browser.js(f"location.hash = '#left=4&right=-1&low={first - 10}&high={first + 60}&slice={slice_number}'")
            browser.wait(f"document.querySelector('#panel-left figcaption').textContent.includes('white {first + 60:g}')")
            value = lambda c, r: series(c, r, slice_number, repetition)
            compare(browser, "left", (NX, NY), value, (first - 10, first + 60), top / 255 / 2)
    # A slider beyond the end of the other image: it says which slice it shows.
    browser.open(page, "#left=0&right=4&slice=3&low=0&high=4")
    assert "slice 2" in caption(browser, "right") and "z = 3" in caption(browser, "left")
    assert browser.js("document.querySelector('#panel-right figcaption').className") == "clamped"


def check_controls(browser, page):
    """Keys, mouse, sliders and reset."""
    browser.open(page, "#right=-1&slice=1&low=0&high=4")
    step = largest(magnitude, NX, NY, NZ) / 255
    for key, z in (("ArrowUp", 2), ("ArrowDown", 1), ("PageUp", 2), ("End", 3), ("ArrowUp", 3), ("Home", 0)):
        press(browser, key)
        assert f"z = {z} " in caption(browser, "left"), (key, caption(browser, "left"))
        compare(browser, "left", (NX, NY), lambda c, r: magnitude(c, NY - 1 - r, z), (0, 4), step / 2)
    mouse(browser, "mouseWheel", place(browser, "left", 1, 1), deltaX=0, deltaY=-100)
    browser.wait("document.querySelector('#panel-left figcaption').textContent.includes('z = 1 ')")
    # The value of a voxel: the second column, the first row from the top.
    mouse(browser, "mouseMoved", place(browser, "left", 1, 0))
    text = browser.js("document.querySelector('#panel-left output').textContent")
    indices, value = text.split("\n")
    assert indices == f"voxel [1, {NY - 1}, 1]", text
    assert abs(float(value.split(" ±")[0]) - magnitude(1, NY - 1, 1)) <= step / 2 + 1e-4, text
    # A drag to the right widens the window, and a drag upwards raises its level.
    at = place(browser, "left", 1, 1)
    window = lambda: [float(browser.js(f"document.getElementById('{n}-name').textContent")) for n in ("window", "level")]
    before = window()
    assert before == [4, 2], before
    mouse(browser, "mousePressed", at, button="left", buttons=1, clickCount=1)
    mouse(browser, "mouseMoved", [at[0] + 60, at[1] - 30], button="left", buttons=1)
    browser.wait("document.getElementById('window-name').textContent !== '4'")
    mouse(browser, "mouseReleased", [at[0] + 60, at[1] - 30], button="left", clickCount=1)
    width, level = window()
    assert abs(width - 4 * math.exp(60 / 150)) < 0.01 and abs(level - 2.4) < 0.01, (width, level)
    ends = (level - width / 2, level + width / 2)
    compare(browser, "left", (NX, NY), lambda c, r: magnitude(c, NY - 1 - r, 1), ends, step / 2 + 0.01)
    slide(browser, "window", 1.5)
    slide(browser, "level", 2.25)
    compare(browser, "left", (NX, NY), lambda c, r: magnitude(c, NY - 1 - r, 1), (1.5, 3), step / 2)
    press(browser, "r")
    black, white = [float(part.split()[1]) for part in caption(browser, "left").split(" · ")[-1].split(", ")]
    assert black == 0 and abs(white - 4) < 2 * step, (black, white)
    press(browser, "2")
    assert "y = 3" in caption(browser, "left") and "plane x, z" in caption(browser, "left")
    # Two images with their own grey scales: the window of the right one follows the left one's.
    browser.open(page, "#left=0&right=3")
    act(browser, "document.getElementById('together').click()")
    assert "white 12" in caption(browser, "right"), caption(browser, "right")
    assert "white 4" in caption(browser, "left"), caption(browser, "left")


def check_names(browser, page):
    """File names with characters of HTML are text."""
    browser.open(page)
    names = browser.js("[...document.getElementById('left').options].map((o) => o.textContent)")
    assert names == NAMES, names
    assert browser.js("document.querySelectorAll('b').length") == 0
    assert "multiples of" in browser.js("document.getElementById('notes').textContent")


def check_damage(browser, page):
    """A page that was cut says so."""
    text = Path(page).read_bytes().decode("utf-16")
    start = text.index(">", text.index('id="d0-0"')) + 1
    cut = Path(page).with_name("cut.html")
    cut.write_bytes(("\ufeff" + text[:start] + text[start + 4:]).encode("utf-16-le"))
    browser.open(cut)
    message = browser.js("document.getElementById('error').textContent")
    assert message.startswith("The page failed: "), message
    browser.errors.clear()


def check_server(browser, folder):
    """A web server that declares UTF-8 does not change the page: its byte order mark has priority."""
    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map = {".html": "text/html; charset=utf-8"}

        def log_message(self, *_):
            """Prints nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{server.server_port}/page.html", "#right=-1&low=0.5&high=3.5&slice=1")
        server.shutdown()
    assert browser.js("document.characterSet") == "UTF-16LE"
    step = largest(magnitude, NX, NY, NZ) / 255
    compare(browser, "left", (NX, NY), lambda c, r: magnitude(c, NY - 1 - r, 1), (0.5, 3.5), step / 2)


def check(folder):
    """Runs all checks. Each page must request nothing but itself, and report no error."""
    page, names = folder / "page.html", folder / "names.html"
    checks = [check_magnitudes, check_signed_numbers, check_complex_numbers, check_differences, check_series,
              check_controls]
    with Browser() as browser:
        for function in checks:
            function(browser, page)
            print(function.__name__)
        check_names(browser, names)
        assert not browser.errors, browser.errors
        check_damage(browser, names)
        expected = {p.resolve().as_uri() for p in (page, names, folder / "cut.html")} | {"about:blank"}
        requested = {address.split("#")[0] for address in browser.requests}
        assert requested <= expected, requested - expected
        assert page.resolve().as_uri() in requested
        check_server(browser, folder)
    print("check_names, check_damage, check_server, and requests")


def measure(pages):
    """Prints the size of pages and the time until the first image is drawn: of five openings."""
    for page in pages:
        seconds = []
        for _ in range(5):
            with Browser() as browser:
                seconds.append(browser.open(page))
                assert not browser.errors, browser.errors
        text = ", ".join(f"{s:.2f}" for s in sorted(seconds))
        print(f"{page}: {os.path.getsize(page) / 1e6:.1f} MB, opened in {text} s")


def picture(page, output):
    path, _, fragment = page.partition("#")
    with Browser(size=(1180, 720)) as browser:
        browser.open(path, f"#{fragment}" if fragment else "")
        Path(output).write_bytes(base64.b64decode(browser.call("Page.captureScreenshot")["data"]))
        assert not browser.errors, browser.errors


def main():
    match sys.argv[1:]:
        case ["write", folder]:
            write(Path(folder))
        case ["check", folder]:
            check(Path(folder))
        case ["time", *pages] if pages:
            measure(pages)
        case ["picture", page, output]:
            picture(page, output)
        case _:
            sys.exit(__doc__)


main()
