/* The extension's function set_codec: what C has to know of frames.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_host.h"
#include "tv_nic_port.h"

tv_codec tv_nic_codec;
PyObject *tv_nic_idle_attr, *tv_nic_data_attr, *tv_nic_virtual_attr;

/* The value of a name of the layout. 0, -1. */
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

static PyObject *set_codec(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *values, *ones;
    uint32_t layout[sizeof(tv_layout) / sizeof(uint32_t)];
    uint32_t masked[TV_HEADERS_ROOM];
    if (!PyArg_ParseTuple(args, "OO!:set_codec", &values, &PyTuple_Type,
                          &ones))
        return NULL;
    uint32_t count = 0;
    for (; tv_layout_names[count]; count++)
        if (read_value(values, tv_layout_names[count], &layout[count]) < 0)
            return NULL;
    Py_ssize_t masked_count = PyTuple_GET_SIZE(ones);
    for (Py_ssize_t i = 0; i < masked_count && i < TV_HEADERS_ROOM; i++) {
        masked[i] =
            (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(ones, i));
        if (PyErr_Occurred())
            return NULL;
    }
    if (masked_count > TV_HEADERS_ROOM ||
        tv_codec_init(&tv_nic_codec, layout, count, masked,
                      (uint32_t)masked_count) < 0) {
        PyErr_SetString(PyExc_ValueError,
                        "the codec cannot work with this layout of headers");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_codec", set_codec, METH_VARARGS,
     "set_codec(values, ones): once, before hosts get NICs: the layout of "
     "frames\n(tailrace.codec.table)."},
    {NULL, NULL, 0, NULL}};

int tv_host_module(PyObject *module)
{
    tv_nic_idle_attr = PyUnicode_InternFromString("idle");
    tv_nic_data_attr = PyUnicode_InternFromString("data");
    tv_nic_virtual_attr = PyUnicode_InternFromString("virtual_bytes");
    if (!tv_nic_idle_attr || !tv_nic_data_attr || !tv_nic_virtual_attr)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
