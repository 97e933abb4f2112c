/* The extension tailrace_codec: the Python types Codec (parses and builds
 * frames) and Port (connects a NIC to a wire through a codec); TimerHeap is in
 * tc_timer_heap.c.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A wire is the link of a NIC's host. The extension's symbols are exported:
 * other extensions that own wires use tc_nic_* from here, so there is one copy
 * of this code.
 */
#include "tc_nic.h"
#include "tc_nic_port.h"

/* ---- Codec ---- */

/* Reads the value of a name of the layout. Returns 0 or -1. */
static int read_value(PyObject *values, const char *name, uint32_t *out)
{
    PyObject *value = PyMapping_GetItemString(values, name);
    if (!value)
        return -1;
    unsigned long number = PyLong_AsUnsignedLong(value);
    Py_DECREF(value);
    if (number == (unsigned long)-1 && PyErr_Occurred())
        return -1;
    *out = (uint32_t)number;
    return 0;
}

/* Initialises a codec from Python objects. `masked_bytes`: offsets, from the
 * IPv4 header on, of the bytes that routers may change, such as the TTL; the
 * ICRC is computed with ones in their place. Returns 0 or -1. */
static int read_codec(tc_codec *codec, PyObject *values, PyObject *masked_bytes)
{
    uint32_t layout[sizeof(tc_layout) / sizeof(uint32_t)];
    uint32_t masked[TC_HEADERS_MAX];
    uint32_t count = 0;
    for (; tc_layout_names[count]; count++)
        if (read_value(values, tc_layout_names[count], &layout[count]) < 0)
            return -1;
    Py_ssize_t masked_count = PyTuple_GET_SIZE(masked_bytes);
    for (Py_ssize_t i = 0; i < masked_count && i < TC_HEADERS_MAX; i++) {
        masked[i] =
            (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(masked_bytes, i));
        if (PyErr_Occurred())
            return -1;
    }
    if (masked_count > TC_HEADERS_MAX ||
        tc_codec_init(codec, layout, count, masked, (uint32_t)masked_count) <
            0) {
        PyErr_SetString(PyExc_ValueError,
                        "the codec does not support this layout of headers");
        return -1;
    }
    return 0;
}

static PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *values, *masked;
    if ((kwargs && PyDict_Size(kwargs)) ||
        !PyArg_ParseTuple(args, "OO!:Codec", &values, &PyTuple_Type, &masked))
        return NULL;
    tc_codec_object *self = (tc_codec_object *)type->tp_alloc(type, 0);
    if (self && read_codec(&self->codec, values, masked) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

PyTypeObject tc_codec_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tailrace_codec.Codec",
    .tp_doc = "Codec(values, masked): parses and builds frames "
              "(tailrace.codec.table).",
    .tp_basicsize = sizeof(tc_codec_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = codec_new,
};

/* ---- Port ---- */

static PyObject *port_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *codec, *nic;
    if ((kwargs && PyDict_Size(kwargs)) ||
        !PyArg_ParseTuple(args, "O!O:Port", &tc_codec_type, &codec, &nic))
        return NULL;
    tc_nic *self = (tc_nic *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->owner = (tc_codec_object *)Py_NewRef(codec);
    self->codec = &self->owner->codec;
    if (tc_nic_init(self, nic) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void port_dealloc(tc_nic *self)
{
    PyObject_GC_UnTrack(self);
    tc_nic_free(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* For PyArg_ParseTuple, whose integer formats silently truncate. */
static int to_number(PyObject *given, void *out)
{
    unsigned long long value = PyLong_AsUnsignedLongLong(given);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return 0;
    *(uint64_t *)out = value;
    return 1;
}

/* A frame may have virtual bytes besides its data: `virt` zeros of payload,
 * which are counted but not stored. */
static PyObject *port_arrive(tc_nic *self, PyObject *args)
{
    uint64_t now_ns, virt = 0;
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "O&y*|O&:arrive", to_number, &now_ns, &data,
                          to_number, &virt))
        return NULL;
    int bad = data.len > (Py_ssize_t)TC_MOST_BYTES || virt > TC_MOST_BYTES;
    if (bad) {
        PyErr_SetString(PyExc_ValueError, "the frame is too long");
    } else {
        tc_frame frame = {.len = (uint32_t)data.len,
                          .virt = (uint32_t)virt, .data = data.buf};
        bad = tc_nic_arrive(self, now_ns, &frame);
    }
    PyBuffer_Release(&data);
    if (bad)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *port_depart(tc_nic *self, PyObject *args)
{
    tc_departure d;
    uint64_t now_ns, next_ns;
    if (!PyArg_ParseTuple(args, "O&:depart", to_number, &now_ns))
        return NULL;
    int departs = tc_nic_depart(self, now_ns, &d, &next_ns);
    if (departs < 0)
        return NULL;
    if (!departs && next_ns == TC_NEVER)
        Py_RETURN_NONE;
    if (!departs)
        return PyLong_FromUnsignedLongLong(next_ns);
    PyObject *frame =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)d.head_len + d.tail_len);
    if (!frame)
        return NULL;
    char *bytes = PyBytes_AS_STRING(frame);
    memcpy(bytes, d.head, d.head_len);
    if (d.tail_len)
        memcpy(bytes + d.head_len, d.tail, d.tail_len);
    return Py_BuildValue("(NI)", frame, (unsigned)d.virt);
}

static PyMethodDef port_methods[] = {
    {"arrive", (PyCFunction)port_arrive, METH_VARARGS,
     "arrive(now_ns, frame, virtual_bytes=0): passes an arriving frame."},
    {"depart", (PyCFunction)port_depart, METH_VARARGS,
     "depart(now_ns) -> (frame, virtual_bytes) to send; or a time, later than "
     "now, before\nwhich there is nothing to send; or None: nothing before "
     "a frame arrives."},
    {0},
};

PyTypeObject tc_nic_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tailrace_codec.Port",
    .tp_doc = "Port(codec, nic): converts arriving frames to calls of a NIC, "
              "and its packets to frames.",
    .tp_basicsize = sizeof(tc_nic),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = port_new,
    .tp_dealloc = (destructor)port_dealloc,
    .tp_traverse = (traverseproc)tc_nic_traverse,
    .tp_clear = (inquiry)tc_nic_clear,
    .tp_methods = port_methods,
};

/* ---- the module ---- */

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tailrace_codec",
    .m_doc = "Parses and builds the frames of hosts, in C.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit_tailrace_codec(void)
{
    PyObject *module = PyModule_Create(&module_def);
    if (module && (PyModule_AddType(module, &tc_codec_type) < 0 ||
                   PyModule_AddType(module, &tc_nic_type) < 0 ||
                   PyModule_AddType(module, &tc_timer_heap_type) < 0))
        Py_CLEAR(module);
    return module;
}
